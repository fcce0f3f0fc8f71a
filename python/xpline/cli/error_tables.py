"""The tables that ``xpline validate`` prints."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from rich.markup import escape
from rich.table import Table

from xpline.score import FLAGGED_ABOVE, FLAGGED_FROM, Score
from xpline.validate import Ablation, Worst

_HEADINGS = {
    "n": ("points", "{}"),
    "median": ("median", "{:.1%}"),
    "mean": ("mean", "{:.1%}"),
    "p90": ("p90", "{:.1%}"),
    "bias": ("bias", "{:+.1%}"),
    "ewr_n": ("EWR points", "{}"),
    "ewr_median": ("EWR median", "{:.3f}"),
    "ewr_p90": ("EWR p90", "{:.3f}"),
}


def errors(score: Score, columns: Sequence[str]) -> Table:
    """The error over everything, then by slice; flagged slices are marked."""
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column)
    for heading, _ in _HEADINGS.values():
        table.add_column(heading, justify="right")
    table.add_column()
    table.add_row("all", *[""] * (len(columns) - 1), *_cells(score.total()), "", style="bold", end_section=True)
    flagged = set(score.flagged(list(columns)).select(columns).iter_rows())
    for row in score.by(list(columns)).iter_rows(named=True):
        place = tuple(row[column] for column in columns)
        mark = "[yellow]![/]" if place in flagged else ""
        table.add_row(*("-" if value is None else str(value) for value in place), *_cells(row), mark)
    return table


def summary(score: Score, columns: Sequence[str]) -> Table:
    """The error over everything, and how many slices are flagged."""
    table = Table(box=None, pad_edge=False)
    shown = [name for name in _HEADINGS if name not in ("n", "bias", "ewr_n")]
    for name in shown:
        table.add_column(_HEADINGS[name][0], justify="right")
    table.add_column(f"slices of {FLAGGED_FROM} points or more with a median above {FLAGGED_ABOVE:.0%} (!)")
    total = score.total()
    cells = ["" if total[name] is None else _HEADINGS[name][1].format(total[name]) for name in shown]
    slices = score.by(list(columns)).filter(pl.col("n") >= FLAGGED_FROM).height
    table.add_row(*cells, f"{score.flagged(list(columns)).height} of {slices}", style="bold")
    return table


def worst(worst: Sequence[Worst]) -> Table:
    """The points that are furthest off."""
    table = Table(box=None, pad_edge=False)
    for heading in ("error", "model", "measured"):
        table.add_column(heading, justify="right")
    table.add_column("bound by")
    table.add_column("point", overflow="fold")
    for one in worst:
        numbers = f"{one.error:+.0%}", f"{one.point['predicted']:.0f}", f"{one.point['measured']:.0f}"
        table.add_row(*numbers, str(one.bound), escape(" ".join(one.words())))
    return table


def ablation(ablation: Ablation) -> Table:
    """The score of the sample without each mechanism."""
    table = Table(box=None, pad_edge=False)
    table.add_column(f"without ({ablation.points} points)")
    for heading in ("mean", "", "median", "p90", "EWR mean", "EWR median", "EWR p90", "touched"):
        table.add_column(heading, justify="right")
    table.add_column("pays")
    names = ("mean", "median", "p90", "ewr_median", "ewr_p90")
    for name, score, one in [
        ("nothing", ablation.on, None),
        *((v.mechanism.name, v.off, v) for v in ablation.verdicts),
    ]:
        mean, median, p90, *ewr = ("" if score[k] is None else _HEADINGS[k][1].format(score[k]) for k in names)
        cost, cost_ewr = (f"{one.cost:+.1%}", f"{one.cost_ewr:+.3f}") if one else ("", "")
        pays = "" if one is None else "yes" if one.pays else "[yellow]no[/]"
        touched = str(one.touched) if one else ""
        table.add_row(name, mean, cost, median, p90, cost_ewr, *ewr, touched, pays)
    return table


def _cells(row: dict[str, float | None]) -> list[str]:
    return ["" if row[column] is None else shape.format(row[column]) for column, (_, shape) in _HEADINGS.items()]
