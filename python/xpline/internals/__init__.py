"""The inside of a DIMM: what the model has in place of it, beside what others measured.

for check in internals.validate("optane-internals"):
    print(check.quantity, check.error, check.holds)
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from xpline.cases import Case, Platforms, Row, run
from xpline.internals.checks import Check, checks, cycles_per_ns
from xpline.internals.data import Internals, is_internals
from xpline.sweeps import Results, internals_cases

__all__ = ["Check", "Internals", "checks", "cycles_per_ns", "is_internals", "validate"]


def validate(
    dataset: str | Path,
    *,
    platforms: Platforms | None = None,
    jobs: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Check]:
    """Run what the measurements in a folder can be held against; ``on_progress`` is told how many points are done."""
    data, platforms, cases = Internals(dataset), platforms or Platforms(), list(dict.fromkeys(internals_cases()))
    finished = 0

    def done(case: Case, row: Row) -> None:
        nonlocal finished
        finished += 1
        if on_progress:
            on_progress(finished, len(cases))

    return checks(Results(run(cases, platforms, jobs, done), platforms), data)
