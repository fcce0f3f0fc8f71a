"""``xpline validate``: the model against every row of a published sweep."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from xpline import validate as package
from xpline.cases import Platforms
from xpline.cli.options import Overrides, parse_overrides
from xpline.cli.output import terminal
from xpline.cli.progress import counting
from xpline.errors import XplineError
from xpline.score import SLICES

_HEADINGS = {
    "n": ("points", "{}"),
    "median": ("median", "{:.1%}"),
    "mean": ("mean", "{:.1%}"),
    "p90": ("p90", "{:.1%}"),
    "ewr_n": ("EWR points", "{}"),
    "ewr_median": ("EWR median", "{:.3f}"),
    "ewr_p90": ("EWR p90", "{:.3f}"),
}


def validate(
    dataset: Annotated[
        Path, typer.Option(help="Folder with data/*.csv: a clone of github.com/NVSL/OptaneStudy, or a part of it.")
    ],
    predictions: Annotated[
        Path | None,
        typer.Option(help="Write the predictions to this CSV file; an interrupted run goes on from FILE.cache."),
    ] = None,
    only: Annotated[
        list[str],
        typer.Option(metavar="COLUMN=VALUE", help="Rows that meet this, such as file=bandwidth,media=ldram|lpmem."),
    ] = [],  # noqa: B006 (typer reads it)
    sample: Annotated[
        int | None, typer.Option(min=1, help="So many of the configurations, always the same ones.")
    ] = None,
    by: Annotated[str, typer.Option(help="Columns to break the error down by.")] = ",".join(SLICES),
    set: Overrides = [],  # noqa: B006
    platform: Annotated[
        list[str], typer.Option(metavar="NAME=FILE", help="A platform file in place of optane, optane-ni or dram.")
    ] = [],  # noqa: B006
    jobs: Annotated[int | None, typer.Option(min=1, help="Points run side by side.", show_default="all cores")] = None,
) -> None:
    """Run the model for every row of a published sweep, and print how far off it is.

    Repeats of a configuration share one simulation. The error of a point is |model - measured| / measured of the
    medians over its repeats, beyond what the instrument resolves.
    """
    platforms = Platforms(parse_overrides(set), platform_files(platform))
    conditions = [condition for text in only for condition in text.split(",")]
    try:
        with counting("validate") as on_progress:
            outcome = package.validate(
                dataset,
                predictions,
                only=conditions,
                sample=sample,
                platforms=platforms,
                jobs=jobs,
                on_progress=on_progress,
            )
    except KeyboardInterrupt:
        if predictions:
            terminal.print("interrupted: run the same command again, and it goes on from here")
        raise
    columns = [column.strip() for column in by.split(",")]
    unknown = [column for column in columns if column not in outcome.score.points.columns]
    if unknown:
        raise XplineError(f"--by {by}: no column {', '.join(unknown)}; use {', '.join(outcome.score.points.columns)}")
    Console(width=None if terminal.is_terminal else 200, highlight=False).print(_errors(outcome, columns))
    _explain(outcome, predictions)


def platform_files(texts: Sequence[str]) -> dict[str, str]:
    """Platform files by the name they stand in for, from ``NAME=FILE``."""
    files = {}
    for text in texts:
        name, equals, file = text.partition("=")
        if not equals or not file:
            raise XplineError(f"--platform {text}: write NAME=FILE, such as optane=my.toml")
        files[name.strip()] = file.strip()
    return files


def _errors(outcome: package.Outcome, columns: Sequence[str]) -> Table:
    """The error over everything, then by slice."""
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column)
    for heading, _ in _HEADINGS.values():
        table.add_column(heading, justify="right")
    table.add_row("all", *[""] * (len(columns) - 1), *_cells(outcome.score.total()), style="bold", end_section=True)
    for row in outcome.score.by(list(columns)).iter_rows(named=True):
        table.add_row(*("-" if row[column] is None else str(row[column]) for column in columns), *_cells(row))
    return table


def _cells(row: dict[str, float | None]) -> list[str]:
    return ["" if row[column] is None else shape.format(row[column]) for column, (_, shape) in _HEADINGS.items()]


def _explain(outcome: package.Outcome, predictions: Path | None) -> None:
    """What stands behind the numbers, on standard error."""
    resumed = f", {outcome.resumed} taken from an earlier run" if outcome.resumed else ""
    terminal.print(f"{outcome.simulated} configurations simulated{resumed}")
    if outcome.score.dropped:
        terminal.print(f"{outcome.score.dropped} configurations left out: their repeats differ by over 30 %")
    for reason, rows in outcome.not_covered.items():
        terminal.print(f"[yellow]{rows} rows without a prediction[/] (counted as 100 % off): {escape(reason)}")
    if predictions:
        terminal.print(f"predictions: {escape(str(predictions))}")
