"""The rows of a data set with the simulation that predicts each, and the predictions once these have run."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from xpline import dataset
from xpline.cases import Case, Platforms, Row, refusal
from xpline.score import Score, score
from xpline.validate.cache import Cache

#: The order in which configurations run and are sampled: fixed, and unrelated to their order in the data set, so
#: that the time left is a fair estimate.
_ORDER_SEED = 2020


@dataclass(frozen=True)
class Study:
    """Rows of a data set, and the case that predicts each (or the reason why none does)."""

    tables: dataset.Tables
    rows: list[dataset.PlannedRow]

    @property
    def cases(self) -> list[Case]:
        """The distinct cases, in the order in which they run."""
        ordered = sorted({row.case for row in self.rows if row.case})
        random.Random(_ORDER_SEED).shuffle(ordered)
        return ordered

    @property
    def not_covered(self) -> dict[str, int]:
        """How many rows have no case, by reason."""
        return dict(Counter(row.reason for row in self.rows if row.reason))

    def of_cases(self, cases: Iterable[Case]) -> Study:
        """The rows that these cases predict."""
        wanted = set(cases)
        return self.of_keys(row.key for row in self.rows if row.case in wanted)

    def of_keys(self, keys: Iterable[str]) -> Study:
        """The rows with these keys."""
        wanted = set(keys)
        tables = {file: table.filter(pl.col("__key__").is_in(wanted)) for file, table in self.tables.items()}
        return Study(tables, [row for row in self.rows if row.key in wanted])

    def predictions(self, cache: Cache) -> pl.DataFrame:
        """What the finished cases predict: ``__key__``, ``file``, ``throughput`` in MiB/s, ``ewr``."""
        found = [cache.get(row.case) if row.case else None for row in self.rows]
        return pl.DataFrame(
            {
                "__key__": [row.key for row in self.rows],
                "file": [row.file for row in self.rows],
                "throughput": [row and row["bandwidth_mib_s"] for row in found],
                "ewr": [row and read_ewr(row) for row in found],
            },
            schema={"__key__": pl.String, "file": pl.String, "throughput": pl.Float64, "ewr": pl.Float64},
        )

    def score(self, cache: Cache) -> Score:
        """How far the predictions of the finished cases are off."""
        return score(self.tables, self.predictions(cache))


def read_study(directory: str | Path, only: Sequence[str], platforms: Platforms) -> Study:
    """The rows of the data set in ``directory`` that meet the conditions ``only``."""
    tables = dataset.select(dataset.read_tables(directory), list(only))
    return Study(tables, [_runnable(row, platforms) for row in dataset.plan(tables)])


def _runnable(row: dataset.PlannedRow, platforms: Platforms) -> dataset.PlannedRow:
    """The row, without its case where the platform cannot run it."""
    reason = row.case and refusal(row.case, platforms)
    return replace(row, case=None, reason=reason) if reason else row


def read_ewr(row: Row) -> float | None:
    """EWR as the counters of a DIMM would give it.

    When nothing is issued the ratio has no value, but a DIMM writes its media now and then for its own reasons, so
    that the counters read close to 0 (0.003 in the sweep, for stores that stay in the caches).
    """
    return 0.0 if row["imc_written_bytes"] == 0 else row["ewr"]
