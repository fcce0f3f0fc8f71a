"""``xpline fit``: values of a platform fitted to measurements."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from xpline import fit as package
from xpline.cli.output import terminal
from xpline.cli.progress import counting
from xpline.fit.outcome import Errors
from xpline.fit.run import SAMPLE


def fit(
    dataset: Annotated[
        Path,
        typer.Option(
            help="Folder with data/*.csv: a clone of github.com/NVSL/OptaneStudy, or files like its; or "
            "results that were measured on a host, in a file or a folder of .parquet files."
        ),
    ],
    platform: Annotated[
        list[str],
        typer.Option(metavar="BASE", help="Platform to start from, by name or file; more of them for other rows."),
    ],
    out: Annotated[
        Path, typer.Option(help="Write the fitted platform here; an interrupted fit goes on from OUT.cache.")
    ],
    only: Annotated[
        list[str], typer.Option(metavar="PREFIX", help="Fit these values alone, such as optane.media.")
    ] = [],  # noqa: B006 (typer reads it)
    parameters: Annotated[
        Path | None, typer.Option(help="What may be fitted, within what bounds.", show_default="xpline's own list")
    ] = None,
    sample: Annotated[
        int, typer.Option(min=1, help="Configurations to fit to, from every slice in proportion.")
    ] = SAMPLE,
    folds: Annotated[int, typer.Option(min=2, help="Parts of the sample, each left out of one more fit.")] = 5,
    budget: Annotated[
        int | None, typer.Option(min=1, help="Runs of the sample that one fit may take.", show_default="a few steps")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sample and the folds.")] = 1,
    jobs: Annotated[int | None, typer.Option(min=1, help="Points run side by side.", show_default="all cores")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the account as JSON.")] = False,
) -> None:
    """Fit values of a platform to measurements, and tell the error on measurements that were left out.

    Writes a platform that extends BASE, and one beside it for each other platform that shares the fitted values.
    """
    try:
        with counting("fit") as on_progress:
            outcome = package.fit(
                dataset,
                platform,
                out,
                only=only,
                parameters=parameters,
                sample=sample,
                folds=folds,
                budget=budget,
                seed=seed,
                jobs=jobs,
                on_progress=on_progress,
            )
    except KeyboardInterrupt:
        terminal.print("interrupted: run the same command again, and it goes on from here")
        raise
    if as_json:
        print(json.dumps(outcome.as_dict(), indent=2))
    else:
        console = Console(width=None if terminal.is_terminal else 200, highlight=False)
        console.print(_parameters(outcome), "", _errors(outcome), "")
        console.print(_conclusion(outcome), soft_wrap=True)
    _explain(outcome)


def _parameters(outcome: package.Outcome) -> Table:
    """Each parameter before and after."""
    table = _table("parameter", "before", "after", "bounds", "at bound", "sensitivity", "without a fold")
    for one in outcome.parameters:
        table.add_row(
            one.key,
            one.before,
            f"[bold]{one.after}[/]",
            f"{one.low} to {one.high}",
            "[yellow]yes[/]" if one.at_bound else "no",
            "" if one.sensitivity is None else f"{one.sensitivity:.2f}",
            " ".join(dict.fromkeys(one.without_fold)),
        )
    return table


def _errors(outcome: package.Outcome) -> Table:
    """Errors of the configurations of each fold, and of all: before, as fitted, as left out."""
    table = _table("", "points", "before", "fitted", "left out", "left out / fitted")
    for number, fold in enumerate(outcome.folds, start=1):
        sides = (fold.before, fold.fitted, fold.left_out)
        table.add_row(f"fold {number}", str(fold.before.n), *map(_cell, sides), f"{fold.ratio:.3f}")
    table.add_section()
    sides = (outcome.before, outcome.fitted, outcome.left_out)
    table.add_row("all folds", str(outcome.before.n), *map(_cell, sides), f"{outcome.ratio.mean:.3f}", style="bold")
    table.add_row("as written", str(outcome.before.n), *map(_cell, (outcome.before, outcome.after)))
    table.caption = "errors: median, mean, 90th percentile; mean of EWR"
    return table


def _table(first: str, *rest: str) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(first)
    for heading in rest:
        table.add_column(heading, justify="right")
    return table


def _cell(errors: Errors) -> str:
    ewr = "" if errors.ewr_mean is None else f" {errors.ewr_mean:.3f}"
    return f"{errors.median:6.1%} {errors.mean:6.1%} {errors.p90:6.1%}{ewr}"


def _conclusion(outcome: package.Outcome) -> str:
    """What the folds say together."""
    ratio = outcome.ratio
    mean, median = (
        f"{value:.3f} (95 % {low:.3f} to {high:.3f})"
        for value, (low, high) in ((ratio.mean, ratio.mean_interval), (ratio.median, ratio.median_interval))
    )
    within = "[green]within a tenth[/]" if ratio.within_a_tenth else "[red]not within a tenth[/]"
    return f"error on left-out configurations over that on fitted ones: mean {mean}, {within}; median {median}"


def _explain(outcome: package.Outcome) -> None:
    """What stands behind the numbers, on standard error."""
    terminal.print(
        f"{outcome.before.n} of {outcome.available} configurations, in bounded runs; "
        f"misfit {outcome.misfit_before:.4f} before, {outcome.misfit_after:.4f} after"
    )
    stopped = outcome.converged.count(False)
    if stopped:
        terminal.print(
            f"[yellow]{stopped} of {len(outcome.converged)} fits ended by their budget[/]: --budget gives more"
        )
    for note in outcome.notes:
        terminal.print(escape(note), soft_wrap=True)
    for path in outcome.files:
        terminal.print(f"platform: {escape(str(path))}", soft_wrap=True)
