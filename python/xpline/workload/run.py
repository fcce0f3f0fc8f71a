"""Cases on platforms: a row a case, and one a part where two run side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import polars as pl

from xpline import bench, table
from xpline.bench.points import Point
from xpline.bench.run import Platforms, check, loaded
from xpline.errors import IncompleteError, Interrupted, XplineError
from xpline.host.host import Host
from xpline.platform import Platform
from xpline.workload.case import Case

#: What hosts measure, of all threads together.
_COUNTED_ON_HOSTS = ("ci_low", "ci_high", "precision", "outliers", "cache_misses", "page_faults", "context_switches")

#: What one part of two has no numbers of its own of: the machine counts both together.
_SHARED = tuple(
    name
    for name in (*table.MEASURES, *_COUNTED_ON_HOSTS)
    if not name.startswith("latency") and name not in ("bandwidth_mib_s", "operations_s", "bytes", "time_ns", "source")
)


def run(
    platform: Platforms,
    cases: Sequence[Case],
    *,
    seed: int = 1,
    max_requests: int | None = None,
    jobs: int | None = None,
    timeline: bool = False,
    progress: Callable[[int, dict[str, Any]], object] | None = None,
) -> pl.DataFrame:
    """Run every case on every platform.

    Columns are those of :mod:`xpline.table`: ``workload`` is the benchmark, ``case`` the values of its matrix. Where
    two parts run side by side, a row for both together comes first, and then one for each, named in ``part``; what is
    counted for the whole machine, such as ``ewr``, is null there. ``progress`` is called with the index and the row of
    each case as it completes; with ``timeline`` the row holds that of its requests.
    """
    platforms = loaded(platform)
    shown = {"timeline": True} if timeline else {}
    points = [case.point(seed, max_requests) | shown for case in cases]
    runs = [_Run(place, one, far) for place, one in enumerate(platforms) for far in (False, True)]
    chosen = [[number for number, case in enumerate(cases) if case.is_far == run.far] for run in runs]
    for run, numbers in zip(runs, chosen, strict=True):
        for number in numbers:
            run.check(cases[number], points[number])
    done: dict[int, dict[str, Any]] = {}

    def rows() -> pl.DataFrame:
        return table.from_rows(row for index in sorted(done) for row in _rows(cases[index % len(cases)], done[index]))

    try:
        for run, numbers in zip(runs, chosen, strict=True):

            def keep(index: int, row: dict[str, Any], run: _Run = run, numbers: list[int] = numbers) -> None:
                place = run.place * len(cases) + numbers[index]
                done[place] = row
                if progress:
                    progress(place, row)

            if numbers:
                bench.run(run.platform, [points[number] for number in numbers], jobs, keep)
    except Interrupted:
        raise Interrupted(rows()) from None
    except IncompleteError as error:
        raise IncompleteError(str(error), rows()) from error
    return rows()


class _Run:
    """A platform, with the threads on the socket of the memory or on the other one."""

    def __init__(self, place: int, platform: Platform | Host, far: bool) -> None:
        self.place = place
        self.far = far
        self.platform = platform
        if far and isinstance(platform, Platform):
            cpu, memory = (platform[f"nodes.{name}"].value for name in ("cpu", "memory"))
            if cpu == memory and memory in ("0", "1"):
                self.platform = platform.changed({"nodes.cpu": 1 - int(memory)})

    def check(self, case: Case, point: Point) -> None:
        """Raise if the case cannot run here."""
        try:
            if self.far and isinstance(self.platform, Host):
                raise XplineError(
                    "numa_pattern = far: a host does not know which node is meant; take numa_pattern: near and choose "
                    "the CPUs of another node with --cpu-node"
                )
            check(self.platform, [point])
        except XplineError as error:
            values = f"{case.values} " if case.matrix else ""
            raise case.place.error(f"{values}on {self.platform.name}: {error}") from None


def _rows(case: Case, row: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """The row of a case, and one of each of its parts if there are two."""
    row = {key: value for key, value in row.items() if key in table.COLUMNS | table.HOST or key == "parts"}
    parts = row.pop("parts")
    named = {"case": case.values or None}
    if not case.is_parallel:
        yield row | named | case.jobs[case.name].settings()
        return
    yield row | named
    for part in parts:
        measured = {key: value for key, value in part.items() if key in table.COLUMNS}
        blank = dict.fromkeys(key for key in row if key in _SHARED or key.startswith("latency"))
        yield row | blank | named | case.jobs[part["name"]].settings() | {"part": part["name"]} | measured
