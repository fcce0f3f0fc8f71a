"""The measured value of a case: what the repeats of its configuration agree on."""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import NamedTuple

from xpline.cases import Case
from xpline.dataset.plan import plan
from xpline.dataset.tables import Tables

#: The power budget that DIMMs ship with; measurements under another one are no match for a plain platform.
_USUAL_BUDGET = ((), ("optane.power.budget=15W",))


class Measured(NamedTuple):
    """Medians over repeats: MiB/s, and EWR where it was read."""

    bandwidth_mib_s: float
    ewr: float | None


def medians(tables: Tables) -> dict[Case, Measured]:
    """Measured values by case (without overrides), of DIMMs under their usual power budget."""
    bandwidth: dict[Case, list[float]] = defaultdict(list)
    ewr: dict[Case, list[float]] = defaultdict(list)
    values = [row for table in tables.values() for row in table.select("throughput", "ewr").iter_rows()]
    for planned, (throughput, ratio) in zip(plan(tables), values, strict=True):
        if planned.case is None or planned.case.overrides not in _USUAL_BUDGET:
            continue
        case = Case(planned.case.platform, (), planned.case.point)
        if throughput and float(throughput) > 0:
            bandwidth[case].append(float(throughput))
            if ratio:
                ewr[case].append(float(ratio))
    return {
        case: Measured(median(readings), median(ewr[case]) if case in ewr else None)
        for case, readings in bandwidth.items()
    }
