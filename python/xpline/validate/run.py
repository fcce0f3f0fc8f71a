"""From a data set to predictions and their score."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from xpline import dataset
from xpline.cases import Case, Platforms, Row, refusal, run
from xpline.files import check_writable, replace_file
from xpline.score import Score, score
from xpline.validate.cache import Cache

#: The order in which configurations run and are sampled: fixed, and unrelated to their order in the data set, so
#: that the time left is a fair estimate.
_ORDER_SEED = 2020


@dataclass(frozen=True)
class Outcome:
    """Predictions for the rows of a data set, in its order, and their score."""

    #: ``__key__``, ``file``, ``throughput`` in MiB/s, ``ewr``: a row for each row of the data set that was asked for.
    predictions: pl.DataFrame
    score: Score
    #: How many rows have no prediction, by reason.
    not_covered: dict[str, int]
    #: How many distinct configurations were run now, and how many had been run before.
    simulated: int
    resumed: int


def validate(
    directory: str | Path,
    predictions: str | Path | None = None,
    *,
    only: Sequence[str] = (),
    sample: int | None = None,
    platforms: Platforms | None = None,
    jobs: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Outcome:
    """Predict every row of the data set in ``directory`` and score the predictions.

    Rows that are repeats share one simulation. With ``predictions``, the predictions are written to that CSV file,
    and finished points are kept beside it (``.cache`` appended to its name), from which an interrupted run goes on.
    ``only`` are conditions that rows must meet (see :func:`xpline.dataset.select`); ``sample`` takes that many of the
    configurations, always the same ones. ``on_progress`` is told how many configurations are done, of how many.
    """
    path = Path(predictions) if predictions is not None else None
    if path is not None:
        check_writable(path)
    platforms = platforms or Platforms()
    tables = dataset.select(dataset.read_tables(directory), list(only))
    rows = [_runnable(row, platforms) for row in dataset.plan(tables)]
    cases = _shuffled({row.case for row in rows if row.case})
    if sample is not None:
        cases = cases[:sample]
        kept = set(cases)
        rows = [row for row in rows if row.case in kept]
        keys = {row.key for row in rows}
        tables = {file: table.filter(pl.col("__key__").is_in(keys)) for file, table in tables.items()}

    cache_path = path.with_name(path.name + ".cache") if path else None
    with Cache(cache_path, platforms) as cache:
        missing = [case for case in cases if cache.get(case) is None]
        _simulate(missing, len(cases), cache, platforms, jobs, on_progress)
        table = _table(rows, cache)
    if path is not None:
        replace_file(path, _csv(table).encode())
    return Outcome(
        predictions=table,
        score=score(tables, table),
        not_covered=dict(Counter(row.reason for row in rows if row.reason)),
        simulated=len(missing),
        resumed=len(cases) - len(missing),
    )


def _runnable(row: dataset.PlannedRow, platforms: Platforms) -> dataset.PlannedRow:
    """The row, without its case where the platform cannot run it."""
    reason = row.case and refusal(row.case, platforms)
    return replace(row, case=None, reason=reason) if reason else row


def _shuffled(cases: set[Case]) -> list[Case]:
    ordered = sorted(cases)
    random.Random(_ORDER_SEED).shuffle(ordered)
    return ordered


def _simulate(
    missing: list[Case],
    total: int,
    cache: Cache,
    platforms: Platforms,
    jobs: int | None,
    on_progress: Callable[[int, int], None] | None,
) -> None:
    finished = total - len(missing)
    if on_progress:
        on_progress(finished, total)

    def done(case: Case, row: Row) -> None:
        nonlocal finished
        cache.add(case, row)
        finished += 1
        if on_progress:
            on_progress(finished, total)

    run(missing, platforms, jobs, done)


def _table(rows: list[dataset.PlannedRow], cache: Cache) -> pl.DataFrame:
    found = [cache.get(row.case) if row.case else None for row in rows]
    return pl.DataFrame(
        {
            "__key__": [row.key for row in rows],
            "file": [row.file for row in rows],
            "throughput": [row and row["bandwidth_mib_s"] for row in found],
            "ewr": [row and read_ewr(row) for row in found],
        },
        schema={"__key__": pl.String, "file": pl.String, "throughput": pl.Float64, "ewr": pl.Float64},
    )


def read_ewr(row: Row) -> float | None:
    """EWR as the counters of a DIMM would give it.

    When nothing is issued the ratio has no value, but a DIMM writes its media now and then for its own reasons, so
    that the counters read close to 0 (0.003 in the sweep, for stores that stay in the caches).
    """
    return 0.0 if row["imc_written_bytes"] == 0 else row["ewr"]


def _csv(table: pl.DataFrame) -> str:
    return table.write_csv(float_precision=4)
