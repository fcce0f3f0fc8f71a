"""An account of the error of a validation, as a folder: one page, its figures, and the tables behind it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl

from xpline.bench.relief import LEAST_GAIN, PARTS
from xpline.figures import render
from xpline.figures.error import draw_errors
from xpline.files import make_folder, replace_file
from xpline.report.page import render_page
from xpline.score import FLAGGED_ABOVE, FLAGGED_FROM, SLICES, Score
from xpline.validate import Ablation, Outcome, Worst
from xpline.validate.ablation import PAYS, PAYS_EWR

#: What the error is broken down by, a table each.
_BREAKDOWNS = (SLICES, ["threads"], ["size_class"], ["walk"])


def write_account(outcome: Outcome, out: Path) -> Path:
    """Write ``index.html``, its figures and its tables to the folder ``out``; the page.

    Every file is made before the first is put in place, and each is put in place whole.
    """
    figures = draw_errors(outcome.score)
    files = {
        "index.html": render_page(
            "account.html",
            figures,
            total=outcome.score.total(),
            dropped=outcome.score.dropped,
            not_covered=outcome.not_covered,
            breakdowns=[(columns, _rows(outcome.score, columns)) for columns in _BREAKDOWNS],
            flagged=outcome.score.flagged().height,
            flagged_from=FLAGGED_FROM,
            flagged_above=FLAGGED_ABOVE,
            worst=outcome.worst,
            bounds=Counter(one.bound.part for one in outcome.worst).most_common(),
            parts=PARTS,
            least_gain=LEAST_GAIN,
            ablation=outcome.ablation,
            idle=outcome.ablation and sum(not one.pays for one in outcome.ablation.verdicts),
            pays=PAYS,
            pays_ewr=PAYS_EWR,
        ),
        "points.csv": outcome.score.points.drop("keys").write_csv().encode(),
        "slices.csv": outcome.score.by().write_csv().encode(),
    }
    for figure in figures:
        files |= render(figure)
    if outcome.worst:
        files["worst.csv"] = _worst_csv(outcome.worst)
    if outcome.ablation:
        files["ablation.csv"] = _ablation_csv(outcome.ablation)
    make_folder(out)
    for name, content in files.items():
        replace_file(out / name, content)
    return out / "index.html"


def _rows(score: Score, columns: list[str]) -> list[dict[str, Any]]:
    """A breakdown, with a mark on the rows that are flagged."""
    flagged = score.flagged(columns).select(*columns, flagged=True)
    rows = score.by(columns).join(flagged, on=columns, how="left", nulls_equal=True, maintain_order="left")
    return rows.with_columns(pl.col("flagged").fill_null(False)).rows(named=True)


def _worst_csv(worst: list[Worst]) -> bytes:
    rows = [
        {"point": " ".join(one.words()), **{name: one.point[name] for name in ("measured", "predicted", "error")},
         "bound": one.bound.part, **{f"gain_{part}": gain for part, gain in one.bound.gains.items()}}
        for one in worst
    ]  # fmt: skip
    columns = ["point", "measured", "predicted", "error", "bound", *(f"gain_{part.name}" for part in PARTS)]
    return pl.DataFrame(rows).select(columns).write_csv().encode()


def _ablation_csv(ablation: Ablation) -> bytes:
    rows = [
        {"without": one.mechanism.name, "pays": one.pays, "cost": one.cost, "cost_ewr": one.cost_ewr,
         "touched": one.touched, "touched_on": one.touched_on, "touched_off": one.touched_off, **one.off}
        for one in ablation.verdicts
    ]  # fmt: skip
    return pl.DataFrame([{"without": "nothing", **ablation.on}, *rows]).select(list(rows[0])).write_csv().encode()
