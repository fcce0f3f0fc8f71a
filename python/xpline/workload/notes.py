"""What a workload file asks for and the model has no part in, said to the user."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import polars as pl

from xpline.workload.case import Case

#: Keys of pages, and why they change nothing where they are false.
_PAGES = {
    "prefault_file": "the model's pages are there from the start, so that no access waits for one",
    "dram_huge_pages": "the model's look-up of pages takes no time, whatever their size",
}

#: A run that takes all of its time measures three quarters of it: the first is warm-up. One that measures less ended
#: before.
_WHOLE = 0.7


def without_effect(cases: Iterable[Case]) -> Iterator[str]:
    """A line for each key whose value has no effect, with the benchmarks that give it."""
    names: dict[str, dict[str, None]] = {key: {} for key in _PAGES}
    for case in cases:
        for key in _PAGES:
            if any(not getattr(job, key) for job in case.jobs.values()):
                names[key][case.name] = None
    for key, benchmarks in names.items():
        if benchmarks:
            yield f"{', '.join(benchmarks)}: {key}: false has no effect: {_PAGES[key]}"


def ended_early(table: pl.DataFrame, cases: Sequence[Case]) -> str | None:
    """A line where runs with a ``run_time`` ended before it."""
    asked = {
        (case.name, case.values or None): min(times)
        for case in cases
        if (times := [job.run_time for job in case.jobs.values() if job.run_time])
    }
    rows = table.filter(pl.col("part").is_null()).select("workload", "case", "time_ns").rows()
    timed = [(time, asked[name, values]) for name, values, time in rows if (name, values) in asked]
    early = sum(time < _WHOLE * seconds * 1e9 for time, seconds in timed)
    if not early:
        return None
    return (
        f"run_time: {early} of {len(timed)} runs that have one ended before it: their mean was known to 1 %, "
        "or they had made the most requests that a run may make (--max-requests)"
    )
