"""Cases on platforms: a row a case, and one a part where two run side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import polars as pl

from xpline import bench, table
from xpline.bench.run import Platforms, check, loaded
from xpline.errors import Interrupted, XplineError
from xpline.workload.case import Case

#: What one part of two has no numbers of its own of: the machine counts both together.
_SHARED = tuple(
    name
    for name in table.MEASURES
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
    for one in platforms:
        for case, point in zip(cases, points, strict=True):
            if any(job.numa_pattern == "far" for job in case.jobs.values()):
                raise case.place.error(f"numa_pattern = far: {one.name} has one socket")
            try:
                check(one, [point])
            except XplineError as error:
                raise case.place.error(f"{case.values}{' ' if case.matrix else ''}on {one.name}: {error}") from None
    done: dict[int, dict[str, Any]] = {}

    def keep(index: int, row: dict[str, Any]) -> None:
        done[index] = row
        if progress:
            progress(index, row)

    def rows() -> pl.DataFrame:
        return table.from_rows(row for index in sorted(done) for row in _rows(cases[index % len(cases)], done[index]))

    try:
        bench.run(platforms, points, jobs, keep)
    except Interrupted:
        raise Interrupted(rows()) from None
    return rows()


def _rows(case: Case, row: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """The row of a case, and one of each of its parts if there are two."""
    row = {key: value for key, value in row.items() if key in table.COLUMNS or key == "parts"}
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
