"""Cases: an experiment's point on a named platform, run once however many rows, claims or figures ask for it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

from xpline import bench, variants
from xpline._native import check_points
from xpline.changes import Change
from xpline.errors import XplineError
from xpline.platform import Platform

Row = dict[str, Any]

#: The platforms that cases name.
NAMES = (
    *("optane", "optane-ni", "dram", "optane-remote", "dram-remote"),
    *("memory-mode", "pmep", "optane-ni-sec23", "optane-2018"),
)

#: Those of them that the rows of the sweep run on.
SWEEP = ("optane", "optane-ni", "dram", "optane-remote", "dram-remote", "optane-2018")


@dataclass(frozen=True, order=True)
class Case:
    """One simulation: a platform by name, the overrides put on it, and a point (as canonical JSON, so that equal
    points compare and hash as equal). Made by :func:`case`."""

    platform: str
    overrides: tuple[str, ...]
    point: str


def case(platform: str, point: dict[str, Any], overrides: tuple[str, ...] = ()) -> Case:
    """A case from a point given as a dictionary.

    >>> case("dram", {"op": "load", "experiment": "latency"}).point
    '{"experiment": "latency", "op": "load"}'
    """
    return Case(platform, overrides, json.dumps(point, sort_keys=True))


class Platforms:
    """The platforms that cases name, as the user wants them: from other files, or with values overridden.

    ``files`` puts a platform file in place of a name, and of its variants (:mod:`xpline.variants`) that have none of
    their own; ``overrides`` go on top of every platform that has the key,
    and win over those of a case.

    >>> platforms = Platforms({"optane.xpbuffer.lines": "128"})
    >>> platforms.parameter("optane-ni", "optane.xpbuffer.lines")
    '128'
    """

    def __init__(self, overrides: Mapping[str, object] | None = None, files: Mapping[str, str] | None = None) -> None:
        self._files = dict(files or {})
        for name in self._files:
            if name not in NAMES:
                raise XplineError(f"--platform {name}={self._files[name]}: NAME is one of {', '.join(NAMES)}")
        self._overrides = dict(overrides or {})
        self._change: Change | None = None
        self._loaded: dict[Any, Platform] = {}
        self._changed: dict[Any, Platform] = {}
        self._fingerprints: dict[Any, str] = {}
        for key, value in self._overrides.items():
            if not any(key in self._keys(name) for name in NAMES):
                self._load(NAMES[0], {key: value})  # raises, and says what is wrong

    def of(self, case: Case) -> Platform:
        """The platform that a case runs on."""
        keys = self._keys(case.platform)
        own = dict(override.split("=", 1) for override in case.overrides)
        asked = {key: value for key, value in self._overrides.items() if key in keys}
        platform = self._load(case.platform, own | asked)
        if self._change is None:
            return platform
        which = (case.platform, case.overrides)
        if which not in self._changed:
            self._changed[which] = platform.changed(self._change.on(platform))
        return self._changed[which]

    def changed(self, change: Change) -> Platforms:
        """These platforms with a change on top of everything else.

        >>> slow = Change("slow rewrites", "", (("optane.ddrt.rewrite_transfer", "50ns"),))
        >>> Platforms({"optane.ddrt.rewrite_transfer": "30ns"}).changed(slow).parameter(
        ...     "optane", "optane.ddrt.rewrite_transfer"
        ... )
        '50ns'
        """
        other = copy(self)
        other._change, other._changed, other._fingerprints = change, {}, {}
        return other

    def fingerprint(self, case: Case) -> str:
        """A digest of every value of the platform that a case runs on."""
        which = (case.platform, case.overrides)
        if which not in self._fingerprints:
            values = [(entry.key, entry.value) for entry in self.of(case).show()]
            self._fingerprints[which] = hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16]
        return self._fingerprints[which]

    def parameter(self, name: str, key: str) -> str:
        """One value of a named platform, as its file writes it."""
        return self.of(case(name, {}))[key].value.strip('"')

    def _keys(self, name: str) -> set[str]:
        return {entry.key for entry in self._load(name, {}).show()}

    def _load(self, name: str, overrides: Mapping[str, object]) -> Platform:
        wanted = (name, tuple(sorted(overrides.items())))
        if wanted not in self._loaded:
            file, own = self._files.get(name, name), {}
            base = variants.base(name)
            if name not in self._files and base in self._files:
                file, own = self._files[base], variants.changed(name)
            self._loaded[wanted] = Platform(file, set=own | dict(overrides))
        return self._loaded[wanted]


def refusal(case: Case, platforms: Platforms) -> str | None:
    """Why a case cannot run on its platform, or None where it can.

    >>> refusal(case("dram", {"experiment": "random", "op": "load", "size": 100, "threads": 1}), Platforms())
    'size = 100: must be a multiple of 64 bytes (a cache line), such as 64 or 128'
    """
    try:
        check_points(platforms.of(case)._native, [case.point])
    except XplineError as error:
        return str(error)
    return None


def run(
    cases: Iterable[Case],
    platforms: Platforms,
    jobs: int | None = None,
    on_done: Callable[[Case, Row], None] | None = None,
) -> dict[Case, Row]:
    """Run every distinct case once; the rows, by case. ``on_done`` is called as each one finishes."""
    by_platform: dict[tuple[str, tuple[str, ...]], list[Case]] = {}
    for one in dict.fromkeys(cases):
        by_platform.setdefault((one.platform, one.overrides), []).append(one)
    rows: dict[Case, Row] = {}
    for group in by_platform.values():
        points = [json.loads(one.point) for one in group]

        def done(index: int, row: Row, group: list[Case] = group) -> None:
            if on_done:
                on_done(group[index], row)

        table = bench.run(platforms.of(group[0]), points, jobs=jobs, progress=done)
        rows |= dict(zip(group, table.iter_rows(named=True), strict=True))
    return rows
