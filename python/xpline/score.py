"""How far predictions are from the measured sweep, point by point.

The rule, which every error that xpline prints for a data set follows:

- A point is a configuration; its measured and predicted values are the medians over its repeats.
- A configuration whose repeats spread by more than 30 % of their median is left out, and counted. Two series are
  known to be bad and are left out too (:func:`_bad_series`).
- A thread reports in steps of 32 MiB over a run of 5 s, so a reading is good to 6.4 MiB/s a thread. The error is
  ``max(0, |predicted - measured| - 6.4 * threads) / measured``; a point without a prediction is 100 % off.
- EWR is off by ``|predicted - measured|``, on Optane points that write and have a measured EWR of at most 1.5; above
  that, lines are rewritten inside the buffer and the resolution of the DIMM's counters decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from xpline.dataset import CONFIGURATION, Tables
from xpline.dataset.tables import read_csv

#: What a reading is good to, in MiB/s a thread: 32 MiB over 5 s.
RESOLUTION = 32 / 5

#: Repeats that spread by more than this share of their median are inconsistent.
SPREAD = 0.3

#: The largest measured EWR that is scored.
EWR_LIMIT = 1.5

#: The columns of the points that are no slices of them.
_VALUES = {"measured", "predicted", "bias", "error", "ewr_measured", "predicted_ewr", "ewr_error", "n", "keys"}

#: The columns that errors are broken down by unless asked otherwise.
SLICES = ["file", "task_type", "media", "interleaving", "operation"]


#: Classes of access sizes, and where each but the last ends: the XPLine, and the size of interleaving, are the borders.
SIZE_CLASSES = ["under 256 B", "256 B to 1 KiB", "1 to 4 KiB", "4 to 64 KiB", "64 KiB and over"]
SIZE_ENDS = [256, 1 << 10, 4 << 10, 64 << 10]

#: What becomes of the address from one access to the next.
WALKS = ["random", "same place", "overlapping", "in sequence", "gaps", "whole pages of 4 KiB"]

#: A slice of so many points or more is flagged when its median error is above this share.
FLAGGED_FROM = 30
FLAGGED_ABOVE = 0.14


@dataclass(frozen=True)
class Score:
    """The scored points, and how many configurations were left out because their repeats disagree.

    ``points`` has the configuration's columns, ``file``, ``measured``, ``predicted`` (MiB/s), ``error`` (a share),
    ``bias`` (the error with its sign, resolution included: above 0 where the model is too fast), ``ewr_measured``,
    ``ewr_error`` (null where EWR is not scored), ``size_class`` and ``walk`` (how addresses go
    on from one access to the next), ``n`` repeats and their ``keys``.
    """

    points: pl.DataFrame
    dropped: int

    @property
    def columns(self) -> list[str]:
        """The columns that the error can be broken down by."""
        return [column for column in self.points.columns if column not in _VALUES]

    def flagged(self, columns: list[str] = SLICES) -> pl.DataFrame:
        """The rows of :meth:`by` of 30 points or more whose median error is above 14 %."""
        return self.by(columns).filter((pl.col("n") >= FLAGGED_FROM) & (pl.col("median") > FLAGGED_ABOVE))

    def total(self) -> dict[str, float]:
        """Counts and errors over all points; the keys are the columns of :meth:`by`."""
        return self.points.select(_summary()).row(0, named=True)

    def by(self, columns: list[str] = SLICES) -> pl.DataFrame:
        """Counts and errors by slice: ``n``, ``median``, ``mean``, ``p90`` of the error, the median ``bias``, the same
        for EWR."""
        return self.points.group_by(columns).agg(_summary()).sort(columns, nulls_last=True)


def read_predictions(path: str | Path) -> pl.DataFrame:
    """Predictions from a CSV file with the columns ``__key__``, ``throughput`` (MiB/s) and, if known, ``ewr``."""
    path = Path(path)
    frame = read_csv(path, ["__key__", "throughput"])
    if "ewr" not in frame.columns:
        frame = frame.with_columns(ewr=pl.lit(None, pl.String))
    return frame.select("__key__", pl.col("throughput", "ewr").cast(pl.Float64))


def score(tables: Tables, predictions: pl.DataFrame) -> Score:
    """Score predictions (``__key__``, ``throughput``, ``ewr``) against the tables of a data set."""
    predictions = (
        predictions.drop_nulls("throughput")
        .unique("__key__", keep="last", maintain_order=True)
        .select("__key__", predicted="throughput", predicted_ewr="ewr")
    )
    scored = [_score_table(file, table, predictions) for file, table in tables.items()]
    points = pl.concat([points for points, _ in scored], how="diagonal")
    for column in SLICES:
        if column not in points.columns:
            points = points.with_columns(pl.lit(None, pl.String).alias(column))
    return Score(points, sum(dropped for _, dropped in scored))


def scored_rows(file: str, table: pl.DataFrame) -> pl.DataFrame:
    """The rows of the table ``file`` that count: with a throughput, and not of a bad series."""
    rows = table.with_columns(pl.col("throughput", "ewr").cast(pl.Float64)).filter(pl.col("throughput") > 0)
    return rows.filter(~_bad_series()) if file == "bandwidth" else rows


def _score_table(file: str, table: pl.DataFrame, predictions: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    configuration = CONFIGURATION[file]
    points = (
        scored_rows(file, table)
        .join(predictions, on="__key__", how="left", maintain_order="left")
        .group_by(configuration, maintain_order=True)
        .agg(
            pl.col("throughput").median().alias("measured"),
            (pl.col("throughput").max() - pl.col("throughput").min()).alias("spread"),
            pl.col("predicted").median(),
            pl.col("ewr").median().alias("ewr_measured"),
            pl.col("predicted_ewr").median(),
            pl.len().alias("n"),
            pl.col("__key__").alias("keys"),
        )
    )
    kept = points.filter(pl.col("spread") <= SPREAD * pl.col("measured"))
    writes = pl.lit(True) if file == "flush" else pl.col("operation") != "Load"
    has_ewr = writes & (pl.col("media") == "lpmem") & (pl.col("ewr_measured") <= EWR_LIMIT)
    off = (pl.col("predicted") - pl.col("measured")).abs() - pl.col("threads") * RESOLUTION
    return kept.with_columns(
        pl.lit(file).alias("file"), pl.col("threads").cast(pl.Int64), pl.when(has_ewr).then("ewr_measured")
    ).select(
        "file", *configuration, _size_class(), _walk(file), "measured", "predicted", "n", "keys",
        "ewr_measured", "predicted_ewr",
        bias=pl.col("predicted") / pl.col("measured") - 1,
        error=(off.clip(lower_bound=0.0) / pl.col("measured")).fill_null(1.0),
        ewr_error=pl.when(pl.col("ewr_measured").is_not_null())
        .then((pl.col("predicted_ewr") - pl.col("ewr_measured")).abs().fill_null(1.0)),
    ), points.height - kept.height  # fmt: skip


def _size_class() -> pl.Expr:
    return classes(pl.col("access_size").cast(pl.Int64), SIZE_ENDS, SIZE_CLASSES).alias("size_class")


def classes(value: pl.Expr, ends: list[int], names: list[str]) -> pl.Expr:
    """The class of a value: the first whose end is above it, or else the last.

    >>> sizes = pl.Series([64, 256, 4096])
    >>> pl.select(classes(pl.lit(sizes), [256, 1024], ["small", "medium", "large"])).to_series().to_list()
    ['small', 'medium', 'large']
    """
    place = pl.sum_horizontal((value >= end).cast(pl.Int64) for end in ends)
    return place.replace_strict(dict(enumerate(names)), return_dtype=pl.Enum(names))


def _walk(file: str) -> pl.Expr:
    """How the addresses go on, one of WALKS."""
    size = pl.col("access_size").cast(pl.Int64)
    if file == "bandwidth":
        stride = pl.col("stride_size").cast(pl.Int64)
        walk = (
            pl.when(pl.col("task_type") == "RandBW").then(pl.lit("random"))
            .when(stride == 0).then(pl.lit("same place"))
            .when(stride < size).then(pl.lit("overlapping"))
            .when(stride == size).then(pl.lit("in sequence"))
            .when(stride % 4096 == 0).then(pl.lit("whole pages of 4 KiB"))
            .otherwise(pl.lit("gaps"))
        )  # fmt: skip
    elif file == "flush":
        walk = pl.when(pl.col("op") == "0").then(pl.lit("in sequence")).otherwise(pl.lit("random"))
    else:
        walk = pl.lit("random")
    return walk.cast(pl.Enum(WALKS)).alias("walk")


def _bad_series() -> pl.Expr:
    """The two series of random interleaved rows that contradict the same points of other days: Store+Flush of
    2019-04-04 equals plain Store to 1 %, and machine AEP2 of 2019-04-18 is off by up to 5 times."""
    random = (pl.col("task_type") == "RandBW") & (pl.col("media") == "lpmem") & (pl.col("interleaving") == "1")
    mislabelled = (pl.col("date") == "2019-04-04") & (pl.col("operation") == "Store+Flush")
    off = (pl.col("date") == "2019-04-18") & (pl.col("machine") == "AEP2")
    return (random & (mislabelled | off)).fill_null(False)


def _summary() -> list[pl.Expr]:
    error, ewr = pl.col("error"), pl.col("ewr_error")
    return [
        pl.len().alias("n"),
        error.median().alias("median"),
        error.mean().alias("mean"),
        error.quantile(0.9, "linear").alias("p90"),
        pl.col("bias").median(),
        ewr.count().alias("ewr_n"),
        ewr.median().alias("ewr_median"),
        ewr.quantile(0.9, "linear").alias("ewr_p90"),
    ]
