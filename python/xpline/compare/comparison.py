"""Lining up rows of the same point, and reading ratios and crossings off them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from xpline import table
from xpline.bench.points import READERS
from xpline.errors import XplineError
from xpline.host.machine import size
from xpline.values import sizes

#: What a memory is judged by, the first of them that a row has, with its unit and whether more is better.
METRICS = {
    "latency_mean_ns": ("mean latency", "ns", False),
    "bandwidth_mib_s": ("bandwidth", "MiB/s", True),
}

#: Settings that do not make another point: who was measured, and how long.
_WHO = ("platform", "overrides", "seed", "max_requests")

#: Settings along which a curve may run, in the order of preference where several have as many values.
AXES = ("size", "region", "threads", "stride", "lines", "delay", "fence", "clwb", "mask")

#: What a long table of :class:`Comparison` has besides the settings of points.
_VALUES = ("memory", "metric", "value", "low", "high", "load")


@dataclass(frozen=True)
class Crossing:
    """Where one memory overtakes another: along ``axis``, at about ``at``, from ``before`` being ahead to ``after``."""

    experiment: str
    where: str
    axis: str
    at: float
    before: str
    after: str

    @property
    def place(self) -> str:
        """``at`` for people.

        >>> Crossing("chase", "", "region", 6377030.0, "host", "dram").place
        '6.1 MiB'
        >>> Crossing("stride", "", "threads", 3.14159, "host", "dram").place
        '3.14'
        """
        return size(round(self.at)) if READERS.get(self.axis) is sizes else f"{self.at:.3g}"


@dataclass(frozen=True)
class Comparison:
    """Points that several memories were measured on; ``long`` has a row for each point and memory."""

    long: pl.DataFrame
    memories: list[str]

    def settings(self, frame: pl.DataFrame | None = None) -> list[str]:
        """The columns that set a point, those that some row has."""
        frame = self.long if frame is None else frame
        return [name for name in frame.columns if name not in _VALUES and frame[name].null_count() < frame.height]

    def ratios(self) -> pl.DataFrame:
        """A row for each point that two memories or more share: the value of each, and its ratio to the first."""
        keys = [*self.settings(), "metric"]
        wide = self.long.pivot("memory", index=keys, values="value", aggregate_function="median", maintain_order=True)
        shared = wide.filter(pl.sum_horizontal(pl.col(name).is_not_null() for name in self.memories) >= 2)
        first, *others = self.memories
        return shared.with_columns((pl.col(name) / pl.col(first)).alias(f"{name} / {first}") for name in others)

    def sweeps(self) -> Iterator[Sweep]:
        """Every experiment, with the axis along which most of its points lie."""
        for (experiment, metric), frame in self.long.group_by("experiment", "metric", maintain_order=True):
            numbers = [name for name in AXES if name in frame.columns and frame[name].n_unique() > 1]
            if not numbers:
                numbers = [name for name in AXES if name in frame.columns and frame[name].null_count() == 0]
            axis = max(numbers, key=lambda name: frame[name].n_unique()) if numbers else None
            others = [
                name for name in self.settings(frame) if name not in ("experiment", axis) and frame[name].n_unique() > 1
            ]
            yield Sweep(experiment, metric, axis, others, frame)

    def crossings(self) -> list[Crossing]:
        """Where, along the axis of each sweep, a memory that was ahead falls behind another."""
        found = []
        for sweep in self.sweeps():
            if sweep.axis is None:
                continue
            for where, curves in sweep.panels(self.memories):
                for number, one in enumerate(self.memories):
                    for other in self.memories[number + 1 :]:
                        found += _crossings(sweep, where, (one, curves.get(one, {})), (other, curves.get(other, {})))
        return found


@dataclass(frozen=True)
class Sweep:
    """The points of one experiment: the axis that its curves run along, and what else varies."""

    experiment: str
    metric: str
    axis: str | None
    others: list[str]
    frame: pl.DataFrame

    def panels(self, memories: Sequence[str]) -> Iterator[tuple[str, dict[str, dict[float, float]]]]:
        """For each combination of what else varies, in words, the curve of each memory."""
        groups = self.frame.group_by(self.others, maintain_order=True) if self.others else [((), self.frame)]
        for values, group in groups:
            curves = {}
            for memory in memories:
                points = group.filter(memory=memory).sort(self.axis)
                if points.height:
                    curves[memory] = dict(zip(points[self.axis].to_list(), points["value"].to_list(), strict=True))
            yield words(dict(zip(self.others, values, strict=True))), curves


def words(values: Mapping[str, object]) -> str:
    """Settings in words.

    >>> words({"op": "load", "threads": 4, "pattern": None})
    'load, threads 4'
    """
    bare = ("op", "pattern", "binding", "mix", "buffer", "order")
    parts = [(f"{value}" if name in bare else f"{name} {value}") for name, value in values.items() if value is not None]
    return ", ".join(parts)


def compare(tables: Mapping[str, pl.DataFrame]) -> Comparison:
    """Line up tables of results, given by name; a memory that stands in two of them is told apart by these names."""
    parts = []
    for name, frame in tables.items():
        missing = [column for column in ("platform", "experiment") if column not in frame.columns]
        if missing:
            raise XplineError(f"{name}: no table of results: column {missing[0]} is missing")
        parts.append(_long(frame).with_columns(pl.lit(name).alias("__table")))
    if not parts:
        raise XplineError("compare: nothing to compare")
    whole = pl.concat(parts, how="diagonal_relaxed")
    if not whole.height:
        raise XplineError("compare: no row has a bandwidth or a latency")
    twice = whole.group_by("memory").agg(pl.col("__table").n_unique()).filter(pl.col("__table") > 1)["memory"]
    told = pl.when(pl.col("memory").is_in(twice.to_list())).then(pl.format("{} ({})", "memory", "__table"))
    whole = whole.with_columns(told.otherwise("memory").alias("memory")).drop("__table")
    return Comparison(whole, whole["memory"].unique(maintain_order=True).to_list())


def _long(frame: pl.DataFrame) -> pl.DataFrame:
    """The settings of each row, its memory, and what it is judged by."""
    absent = [name for name in (*METRICS, "ci_low", "ci_high", "overrides") if name not in frame.columns]
    frame = frame.with_columns(pl.lit(None).alias(name) for name in absent)
    settings = [name for name in table.SETTINGS if name in frame.columns and name not in _WHO]
    memory = pl.concat_str("platform", "overrides", separator=" ", ignore_nulls=True)
    metric = pl.coalesce(pl.when(pl.col(name).is_not_null()).then(pl.lit(name)) for name in METRICS)
    return frame.select(
        *settings,
        memory.alias("memory"),
        metric.alias("metric"),
        pl.coalesce(*METRICS).cast(pl.Float64).alias("value"),
        # The bandwidth under which a latency was measured: the axis of a loaded memory.
        pl.when(pl.col("latency_mean_ns").is_not_null()).then("bandwidth_mib_s").cast(pl.Float64).alias("load"),
        pl.col("ci_low").cast(pl.Float64).alias("low"),
        pl.col("ci_high").cast(pl.Float64).alias("high"),
    ).drop_nulls("value")


def _crossings(
    sweep: Sweep, where: str, one: tuple[str, dict[float, float]], other: tuple[str, dict[float, float]]
) -> Iterator[Crossing]:
    """Where two curves cross, straight lines between their points on logarithmic axes."""
    more_is_better = METRICS[sweep.metric][2]
    shared = sorted(set(one[1]) & set(other[1]))
    lead = {x: math.log(one[1][x] / other[1][x]) for x in shared if x > 0 and one[1][x] > 0 and other[1][x] > 0}
    places = list(lead)
    for left, right in pairwise(places):
        if lead[left] * lead[right] < 0:
            share = lead[left] / (lead[left] - lead[right])
            at = math.exp(math.log(left) + share * (math.log(right) - math.log(left)))
            ahead = one[0] if (lead[left] > 0) == more_is_better else other[0]
            behind = other[0] if ahead == one[0] else one[0]
            yield Crossing(sweep.experiment, where, sweep.axis or "", at, ahead, behind)
