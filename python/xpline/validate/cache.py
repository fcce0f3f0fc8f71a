"""Finished points on disk, so that a run that was stopped goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from xpline import _native
from xpline.cases import Case, Platforms, Row

#: What is kept of a row: what predictions need.
KEPT = ("bandwidth_mib_s", "ewr")


class Cache:
    """Rows of finished cases in a file of JSON lines, appended to as they finish.

    A row is found again only for the same point on a platform with the same values, and only by the same build of
    the model: the first line of the file names the build, and another build starts the file anew. A last line cut
    short by an interruption is dropped. Without a path nothing is kept.
    """

    def __init__(self, path: Path | None, platforms: Platforms) -> None:
        self._path = path
        self._platforms = platforms
        self._rows: dict[str, Row] = {}
        self._file = None

    def __enter__(self) -> Self:
        if self._path is not None:
            good = self._read()
            if good is None:
                self._path.write_text(json.dumps({"model": model_version()}) + "\n")
            else:
                with self._path.open("r+b") as file:
                    file.truncate(good)
            self._file = self._path.open("a")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def get(self, case: Case) -> Row | None:
        """The row of a case if it has been run, with the columns in KEPT."""
        return self._rows.get(self._key(case))

    def add(self, case: Case, row: Row) -> None:
        """Keep the row of a case that has finished."""
        kept = {column: row[column] for column in KEPT}
        self._rows[self._key(case)] = kept
        if self._file is not None:
            self._file.write(json.dumps({"case": self._key(case), **kept}) + "\n")
            self._file.flush()

    def _key(self, case: Case) -> str:
        text = f"{self._platforms.fingerprint(case)} {case.point}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def _read(self) -> int | None:
        """Read the file up to its last whole line; the length read, or None when it is of no use to this build."""
        try:
            lines = self._path.read_bytes().splitlines(keepends=True)
        except FileNotFoundError:
            return None
        length = 0
        for number, line in enumerate(lines):
            entry = _whole(line)
            if number == 0 and entry != {"model": model_version()}:
                return None
            if entry is None:
                break
            if number:
                self._rows[entry.pop("case")] = entry
            length += len(line)
        return length or None


def _whole(line: bytes) -> dict[str, Any] | None:
    """The entry of a line, or None when the line was cut short."""
    try:
        return json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None


def model_version() -> str:
    """The version of the package and a digest of its compiled model: any change of the model changes it."""
    try:
        number = version("xpline")
    except PackageNotFoundError:
        number = "0"
    return f"{number} {hashlib.sha256(Path(_native.__file__).read_bytes()).hexdigest()[:16]}"
