"""The score with each mechanism of the model switched off: what pays for its place."""

from __future__ import annotations

import random
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import polars as pl

from xpline import changes
from xpline.cases import Platforms
from xpline.changes import Change
from xpline.score import SLICES, Score
from xpline.validate.cache import Cache, Progress, within
from xpline.validate.study import Study

_FILE = files("xpline.validate") / "mechanisms.toml"

#: The mechanisms and laws of the model, and what switches each off.
MECHANISMS = changes.read(_FILE, "mechanism")

#: A prediction is touched when it changes by more than this share, or the EWR by more than this.
TOUCHED, TOUCHED_EWR = 0.01, 0.01

#: A mechanism pays when switching it off raises the mean error of the sample by this, or that of EWR by this. Less is
#: within what a sample can tell: a prediction moves by 1 % when anything in the order of its events changes.
PAYS, PAYS_EWR = 0.001, 0.001

#: About how many points of the sweep are scored again with each mechanism switched off.
SAMPLE = 240

#: Points that the sample has of each slice at least, where there are so many.
_LEAST = 6

_SEED = 2020


@dataclass(frozen=True)
class Verdict:
    """The score of the sample without one mechanism."""

    mechanism: Change
    #: As :meth:`Score.total` has it, without the mechanism.
    off: dict[str, float]
    #: What switching it off adds to the mean error, and to the mean error of EWR (of which no point adds more than 1).
    cost: float
    cost_ewr: float
    #: How many points it touches; their mean error with it and without.
    touched: int
    touched_on: float | None
    touched_off: float | None
    #: The slices that suffer most without it: SLICES, ``n``, ``on`` and ``off``, the mean errors; the worst first.
    slices: pl.DataFrame

    def suffering(self, count: int) -> list[dict[str, Any]]:
        """The slices that suffer most without it, at most so many: ``name``, and the mean error ``on`` and ``off``."""
        rows = self.slices.filter(pl.col("off") - pl.col("on") > TOUCHED).head(count)
        return [
            {"name": " ".join(row[column] for column in SLICES[1:] if row[column]), "on": row["on"], "off": row["off"]}
            for row in rows.iter_rows(named=True)
        ]

    @property
    def pays(self) -> bool:
        """Whether the model is better with it."""
        return self.cost >= PAYS or self.cost_ewr >= PAYS_EWR


@dataclass(frozen=True)
class Ablation:
    """The score of a sample of the points with all mechanisms, and without each; what matters most comes first."""

    points: int
    on: dict[str, float]
    verdicts: list[Verdict]


def ablate(
    study: Study,
    scored: Score,
    cache: Cache,
    platforms: Platforms,
    count: int,
    jobs: int | None = None,
    on_progress: Progress | None = None,
) -> Ablation:
    """Score about ``count`` points again with each mechanism switched off.

    The points are a sample by slice: in proportion to its size, but no fewer than 6 of each, drawn by a fixed seed.
    """
    part = study.of_keys(sample(scored.points, count))
    on, cases = part.score(cache), part.cases
    verdicts = []
    for number, mechanism in enumerate(MECHANISMS):
        without = cache.on(platforms.changed(mechanism))
        without.run(cases, jobs, within(on_progress, number * len(cases), len(MECHANISMS) * len(cases)))
        verdicts.append(verdict(mechanism, on, part.score(without)))
    verdicts.sort(key=lambda one: (one.cost + one.cost_ewr, one.touched), reverse=True)
    return Ablation(on.points.height, on.total(), verdicts)


def sample(points: pl.DataFrame, count: int) -> list[str]:
    """The keys of about ``count`` predicted points, by slice (see :func:`ablate`)."""
    chosen: list[list[str]] = []
    points = points.filter(pl.col("predicted").is_not_null())
    for group in points.partition_by(SLICES, maintain_order=True):
        share = max(_LEAST, round(count * group.height / points.height))
        keys = group["keys"].to_list()
        chosen += random.Random(_SEED).sample(keys, min(share, len(keys)))
    return [key for keys in chosen for key in keys]


def verdict(mechanism: Change, on: Score, off: Score) -> Verdict:
    """What the scores of the same points with a mechanism and without it say about it."""
    both = on.points.with_columns(
        off=off.points["error"],
        ewr_off=off.points["ewr_error"],
        touched=((off.points["predicted"] / on.points["predicted"] - 1).abs() > TOUCHED)
        | ((off.points["predicted_ewr"] - on.points["predicted_ewr"]).abs() > TOUCHED_EWR).fill_null(False),
    )
    touched = both.filter(pl.col("touched"))
    slices = (
        both.group_by(SLICES)
        .agg(pl.len().alias("n"), pl.col("error").mean().alias("on"), pl.col("off").mean())
        .sort(pl.col("off") - pl.col("on"), *SLICES, descending=[True, *[False] * len(SLICES)])
    )
    return Verdict(
        mechanism,
        off=off.total(),
        cost=both.select(pl.col("off").mean() - pl.col("error").mean()).item() or 0.0,
        cost_ewr=both.select((pl.col("ewr_off").clip(upper_bound=1.0) - pl.col("ewr_error")).mean()).item() or 0.0,
        touched=touched.height,
        touched_on=touched["error"].mean(),
        touched_off=touched["off"].mean(),
        slices=slices,
    )
