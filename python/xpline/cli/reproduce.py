"""``xpline reproduce``: the published claims and figures, run again on the model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from xpline import reproduce as package
from xpline.cases import Platforms
from xpline.claims import Judged
from xpline.cli.options import Overrides, parse_overrides
from xpline.cli.output import terminal
from xpline.cli.progress import counting
from xpline.cli.validate import platform_files
from xpline.figures import ERROR_LIMIT, Figure

_MARKS = {"holds": "[green]holds[/]", "fails": "[red]fails[/]", "disputed": "disputed", "given": "given"}


def reproduce(
    dataset: Annotated[
        Path | None,
        typer.Option(help="Measurements to draw in the figures: a clone of github.com/NVSL/OptaneStudy."),
    ] = None,
    internals: Annotated[
        Path | None,
        typer.Option(
            help="Measurements of a DIMM's inside to draw: report/results_csv of "
            "github.com/Systems-ShiftLab/optane_sec23_ae."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the page and its files.")] = Path("build/reproduce"),
    set: Overrides = [],  # noqa: B006 (typer reads it)
    platform: Annotated[
        list[str],
        typer.Option(metavar="NAME=FILE", help="A platform file in place of optane or dram, and of its variants."),
    ] = [],  # noqa: B006
    jobs: Annotated[int | None, typer.Option(min=1, help="Points run side by side.", show_default="all cores")] = None,
) -> None:
    """Put the model beside what has been published: each claim, and each figure.

    Writes index.html, which needs no network, and every figure as SVG, PNG and CSV.
    """
    platforms = Platforms(parse_overrides(set), platform_files(platform))
    with counting("reproduce") as on_progress:
        outcome = package.reproduce(
            out, dataset=dataset, internals=internals, platforms=platforms, jobs=jobs, on_progress=on_progress
        )
    console = Console(width=None if terminal.is_terminal else 200, highlight=False)
    console.print(_claims(outcome.claims))
    rest = [one.claim.id for one in outcome.claims if one.status == "not covered yet"]
    console.print(f"\nnot covered yet ({len(rest)}): {', '.join(rest)}")
    if dataset or internals:
        console.print("\n", _figures(outcome.figures), sep="")
    console.print(f"\n[bold]{outcome.summary}[/]")
    console.print(f"page: {escape(str(outcome.index))}", soft_wrap=True)


def _claims(claims: Sequence[Judged]) -> Table:
    """The claims that the model can be asked about."""
    table = Table(box=None, pad_edge=False)
    for heading in ("id", "claim", "published", "model", "error", "holds"):
        table.add_column(heading, justify="right" if heading == "error" else "left")
    for one in claims:
        if one.status != "not covered yet":
            texts = (one.claim.id, f"{one.claim.claim} ({one.claim.system})", one.claim.published, one.model, one.error)
            table.add_row(*map(escape, texts), _MARKS[one.status])
    return table


def _figures(figures: Sequence[Figure]) -> Table:
    """The median error of each figure that has measured points."""
    table = Table(box=None, pad_edge=False)
    table.add_column("figure")
    table.add_column("median error", justify="right")
    for figure in figures:
        error = "no measured points" if figure.error is None else f"{figure.error:.1%}"
        table.add_row(figure.title, f"[red]{error}, above {ERROR_LIMIT:.0%}[/]" if figure.is_off else error)
    return table
