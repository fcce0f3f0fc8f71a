"""Finished points on disk, so that a run that was stopped goes on where it stopped."""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Callable, Sequence
from copy import copy
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from xpline import _native
from xpline.cases import Case, Platforms, Row, run
from xpline.errors import XplineError

#: What is kept of a row: what predictions need.
KEPT = ("bandwidth_mib_s", "ewr", "imc_written_bytes")


#: Told how many runs are done, of how many.
Progress = Callable[[int, int], None]


class Cache:
    """Rows of finished cases in a file of JSON lines, appended to as they finish.

    A row is found again only for the same point on a platform with the same values, and only by the same build of
    the model: the first line of the file names the build, and another build starts the file anew. A last line cut
    short by an interruption is dropped. One run at a time may have the file. Without a path nothing is kept.
    """

    def __init__(self, path: Path | None, platforms: Platforms) -> None:
        self._path = path
        self._platforms = platforms
        self._rows: dict[str, Row] = {}
        self._file = None

    def __enter__(self) -> Self:
        if self._path is not None:
            self._file = self._path.open("a+b")
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._file.close()
                raise XplineError(f"{self._path}: another run is using it; wait for it, or name another file") from None
            self._file.truncate(self._read())
            if self._file.tell() == 0:
                self._append({"model": model_version()})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def on(self, platforms: Platforms) -> Cache:
        """The same rows and the same file, for cases that run on other platforms."""
        other = copy(self)
        other._platforms = platforms
        return other

    def get(self, case: Case) -> Row | None:
        """The row of a case if it has been run, with the columns in KEPT."""
        return self._rows.get(self._key(case))

    def add(self, case: Case, row: Row) -> None:
        """Keep the row of a case that has finished."""
        kept = {column: row[column] for column in KEPT}
        self._rows[self._key(case)] = kept
        if self._file is not None:
            self._append({"case": self._key(case), **kept})

    def run(self, cases: Sequence[Case], jobs: int | None = None, on_progress: Progress | None = None) -> int:
        """Run the cases that have not been run; how many these were. ``on_progress`` is told how many are done, of
        how many."""
        missing = [case for case in cases if self.get(case) is None]
        finished = len(cases) - len(missing)
        if on_progress:
            on_progress(finished, len(cases))

        def done(case: Case, row: Row) -> None:
            nonlocal finished
            self.add(case, row)
            finished += 1
            if on_progress:
                on_progress(finished, len(cases))

        run(missing, self._platforms, jobs, done)
        return len(missing)

    def _append(self, entry: dict[str, Any]) -> None:
        self._file.write(json.dumps(entry).encode() + b"\n")
        self._file.flush()

    def _key(self, case: Case) -> str:
        text = f"{self._platforms.fingerprint(case)} {case.point}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def _read(self) -> int:
        """Read the file up to its last whole line; the length read, which is 0 when it is of no use to this build."""
        self._file.seek(0)
        length = 0
        for number, line in enumerate(self._file):
            entry = _whole(line)
            if entry is None or (number == 0 and entry != {"model": model_version()}):
                break
            if number:
                self._rows[entry.pop("case")] = entry
            length += len(line)
        self._file.seek(length)
        return length


def within(
    on_progress: Callable[[int, int], None] | None, before: int, total: int
) -> Callable[[int, int], None] | None:
    """Progress of one step of several: ``before`` are done in earlier steps, of ``total`` in all."""
    return on_progress and (lambda done, _: on_progress(before + done, total))


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
