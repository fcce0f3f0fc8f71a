"""The points that are furthest off, and what the model thinks bounds them."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import polars as pl

from xpline.bench.relief import PARTS, Bound, bound
from xpline.cases import Case, Platforms
from xpline.score import Score
from xpline.validate.cache import Cache, Progress, within
from xpline.validate.study import Study

#: How many of the points are explained unless asked otherwise.
WORST = 50


@dataclass(frozen=True)
class Worst:
    """A point that is far off: its row of ``Score.points``, the case that predicts it, and what bounds it there."""

    point: dict[str, Any]
    case: Case
    bound: Bound

    @property
    def error(self) -> float:
        """The error as it is scored, with a sign: above 0 the model is too fast."""
        return math.copysign(self.point["error"], self.point["bias"])

    def words(self) -> list[str]:
        """What ``xpline bench`` takes to run this point again, option by option.

        >>> from xpline.cases import case
        >>> point = {"experiment": "stride", "op": "load", "size": 64, "stride": 4096, "threads": 4}
        >>> print(*Worst({}, case("optane-ni", point, ("optane.power.budget=18W",)), Bound({})).words())
        stride --on optane-ni --op load --size 64 --stride 4096 --threads 4 --set optane.power.budget=18W
        """
        point = json.loads(self.case.point)
        words = [point.pop("experiment"), f"--on {self.case.platform}"]
        words += [
            f"--{name}" if value is True else f"--{name} {value}" for name, value in point.items() if value is not False
        ]
        return words + [f"--set {override}" for override in self.case.overrides]


def explain_worst(
    study: Study,
    scored: Score,
    cache: Cache,
    platforms: Platforms,
    count: int,
    jobs: int | None = None,
    on_progress: Progress | None = None,
) -> list[Worst]:
    """The ``count`` points with the greatest error, worst first. Points without a prediction are not among them."""
    cases = {row.key: row.case for row in study.rows if row.case}
    rows = scored.points.filter(pl.col("predicted").is_not_null()).sort("error", descending=True, maintain_order=True)
    points = list(rows.head(count).iter_rows(named=True))
    chosen = [next(cases[key] for key in point["keys"] if key in cases) for point in points]
    relieved = {part.name: cache.on(platforms.changed(part)) for part in PARTS}
    total = len(PARTS) * len(chosen)
    for number, part in enumerate(relieved.values()):
        part.run(chosen, jobs, within(on_progress, number * len(chosen), total))
    return [
        Worst(point, case, bound(cache.get(case), {name: part.get(case) for name, part in relieved.items()}))
        for point, case in zip(points, chosen, strict=True)
    ]
