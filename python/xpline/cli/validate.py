"""``xpline validate``: the model against every row of a published sweep."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from xpline import internals
from xpline import validate as package
from xpline.cases import Platforms
from xpline.cli import error_tables
from xpline.cli.options import Overrides, parse_overrides
from xpline.cli.output import terminal
from xpline.cli.progress import counting
from xpline.errors import XplineError
from xpline.score import SLICES
from xpline.validate.ablation import SAMPLE
from xpline.validate.worst import WORST


def validate(
    dataset: Annotated[
        Path,
        typer.Option(
            help="Folder with data/*.csv: a clone of github.com/NVSL/OptaneStudy, or a part of it. Or "
            "report/results_csv of github.com/Systems-ShiftLab/optane_sec23_ae: then the inside of a DIMM is validated."
        ),
    ],
    predictions: Annotated[
        Path | None,
        typer.Option(help="Write the predictions to this CSV file; an interrupted run goes on from FILE.cache."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write a page that accounts for the error to this folder, with figures and tables. It has what "
            "--explain prints; an interrupted run goes on from points.cache in it."
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print the 50 points that are furthest off, and what bounds them.")
    ] = False,
    ablate: Annotated[
        bool,
        typer.Option(
            "--ablate", help=f"Score {SAMPLE} of the points again with each mechanism of the model switched off."
        ),
    ] = False,
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
        list[str],
        typer.Option(metavar="NAME=FILE", help="A platform file in place of optane or dram, and of its variants."),
    ] = [],  # noqa: B006
    jobs: Annotated[int | None, typer.Option(min=1, help="Points run side by side.", show_default="all cores")] = None,
) -> None:
    """Run the model for every row of a published sweep, and print how far off it is.

    Repeats of a configuration share one simulation. The error of a point is |model - measured| / measured of the
    medians over its repeats, beyond what the instrument resolves.
    """
    platforms = Platforms(parse_overrides(set), platform_files(platform))
    if internals.is_internals(dataset):
        _validate_internals(dataset, platforms, jobs)
        return
    conditions = [condition for text in only for condition in text.split(",")]
    try:
        with counting("validate") as on_progress:
            outcome = package.validate(
                dataset,
                predictions,
                only=conditions,
                sample=sample,
                worst=WORST if explain or out else 0,
                ablation=SAMPLE if ablate else 0,
                kept=out and not predictions and out / "points.cache",
                platforms=platforms,
                jobs=jobs,
                on_progress=on_progress,
            )
    except KeyboardInterrupt:
        if predictions or out:
            terminal.print("interrupted: run the same command again, and it goes on from here")
        raise
    columns = [column.strip() for column in by.split(",")]
    unknown = [column for column in columns if column not in outcome.score.columns]
    if unknown:
        raise XplineError(f"--by {by}: no column {', '.join(unknown)}; use {', '.join(outcome.score.columns)}")
    console = Console(width=None if terminal.is_terminal else 200, highlight=False)
    console.print(error_tables.errors(outcome.score, columns))
    if explain:
        console.print("\n", error_tables.worst(outcome.worst), sep="")
    if outcome.ablation:
        console.print("\n", error_tables.ablation(outcome.ablation), sep="")
    console.print("\n", error_tables.summary(outcome.score, columns), sep="")
    if out:
        from xpline.report.account import write_account  # here, as it takes a while and few ask for it

        console.print(f"page: {escape(str(write_account(outcome, out)))}", soft_wrap=True)
    _remarks(outcome, predictions)


def _validate_internals(dataset: Path, platforms: Platforms, jobs: int | None) -> None:
    """Print the inside of a DIMM as modelled beside what was measured."""
    with counting("internals") as on_progress:
        found = internals.validate(dataset, platforms=platforms, jobs=jobs, on_progress=on_progress)
    shown = Table(box=None, pad_edge=False)
    for heading in ("quantity", "measured", "model", "error", "near enough"):
        shown.add_column(heading, justify="left" if heading in ("quantity", "near enough") else "right")
    for one in found:
        verdict = "[green]yes[/]" if one.holds else "[red]no[/]"
        shown.add_row(one.quantity, one.measured, one.model, one.error, verdict)
    Console(width=None if terminal.is_terminal else 200, highlight=False).print(shown)
    terminal.print(f"{sum(one.holds for one in found)} of {len(found)} quantities are near enough")


def platform_files(texts: Sequence[str]) -> dict[str, str]:
    """Platform files by the name they stand in for, from ``NAME=FILE``."""
    files = {}
    for text in texts:
        name, equals, file = text.partition("=")
        if not equals or not file:
            raise XplineError(f"--platform {text}: write NAME=FILE, such as optane=my.toml")
        files[name.strip()] = file.strip()
    return files


def _remarks(outcome: package.Outcome, predictions: Path | None) -> None:
    """What stands behind the numbers, on standard error."""
    resumed = f", {outcome.resumed} taken from an earlier run" if outcome.resumed else ""
    terminal.print(f"{outcome.simulated} configurations simulated{resumed}")
    if outcome.score.dropped:
        terminal.print(f"{outcome.score.dropped} configurations left out: their repeats differ by over 30 %")
    for reason, rows in outcome.not_covered.items():
        terminal.print(f"[yellow]{rows} rows without a prediction[/] (counted as 100 % off): {escape(reason)}")
    if predictions:
        terminal.print(f"predictions: {escape(str(predictions))}")
