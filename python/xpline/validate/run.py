"""From a data set to predictions, their score, and an account of the error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from xpline.cases import Platforms
from xpline.files import check_writable, make_folder, replace_file
from xpline.score import Score
from xpline.validate.ablation import Ablation, ablate
from xpline.validate.cache import Cache
from xpline.validate.study import read_study
from xpline.validate.worst import Worst, explain_worst

#: Told how many runs are done, of how many, and what for.
Progress = Callable[[int, int, str], None]


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
    #: The points that are furthest off with what bounds them, and the score without each mechanism, where asked for.
    worst: list[Worst]
    ablation: Ablation | None


def validate(
    directory: str | Path,
    predictions: str | Path | None = None,
    *,
    only: Sequence[str] = (),
    sample: int | None = None,
    worst: int = 0,
    ablation: int = 0,
    kept: str | Path | None = None,
    platforms: Platforms | None = None,
    jobs: int | None = None,
    on_progress: Progress | None = None,
) -> Outcome:
    """Predict every row of the data set in ``directory`` and score the predictions.

    Rows that are repeats share one simulation. With ``predictions``, the predictions are written to that CSV file.
    Finished points are kept in the file ``kept`` (by default beside the predictions, ``.cache`` appended to their
    name), from which an interrupted run goes on. ``only`` are conditions that rows must meet (see
    :func:`xpline.dataset.select`); ``sample`` takes that many of the configurations, always the same ones.

    ``worst`` is how many of the points that are furthest off are explained, and ``ablation`` on how many points the
    score is taken again with each mechanism of the model switched off.
    """
    path = Path(predictions) if predictions is not None else None
    if path is not None:
        check_writable(path)
        kept = kept or path.with_name(path.name + ".cache")
    platforms = platforms or Platforms()
    study = read_study(directory, only, platforms)
    if sample is not None:
        study = study.of_cases(study.cases[:sample])

    def step(title: str) -> Callable[[int, int], None] | None:
        return on_progress and (lambda done, total: on_progress(done, total, title))

    if kept:
        make_folder(Path(kept).parent)
    with Cache(Path(kept) if kept else None, platforms) as cache:
        cases = study.cases
        simulated = cache.run(cases, jobs, step("validate"))
        table = study.predictions(cache)
        if path is not None:
            replace_file(path, table.write_csv(float_precision=4).encode())
        scored = study.score(cache)
        return Outcome(
            predictions=table,
            score=scored,
            not_covered=study.not_covered,
            simulated=simulated,
            resumed=len(cases) - simulated,
            worst=explain_worst(study, scored, cache, platforms, worst, jobs, step("explain")),
            ablation=ablate(study, scored, cache, platforms, ablation, jobs, step("ablate")) if ablation else None,
        )
