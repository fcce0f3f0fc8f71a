"""``xpline compare``: memories side by side."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from rich.console import Console
from rich.table import Table

from xpline import bench, results
from xpline.bench.points import READERS
from xpline.cli.host_options import HostOptions
from xpline.cli.output import terminal
from xpline.cli.progress import counting
from xpline.compare import METRICS, Comparison
from xpline.compare import compare as line_up
from xpline.errors import XplineError
from xpline.files import make_folder

#: What runs where an experiment is named and nothing else: the defaults of ``xpline bench``.
_USUAL = {
    "random": {"op": "load,ntstore", "size": "64..4096", "threads": 1},
    "stride": {"op": "load,ntstore", "size": 256, "stride": None, "fence": 0, "threads": 1},
    "flush": {"pattern": "sequential", "size": 4096, "clwb": 64, "fence": "64..4096", "threads": 1},
    "latency": {"op": "load,ntstore,store+clwb", "pattern": "sequential,random"},
    "persist-latency": {"op": "ntstore,store+clwb", "size": "64..4096"},
    "chase": {"region": "4KiB..256MiB", "cached": True},
}


def compare(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|MEMORY...",
            help="Tables that --out wrote, or, with --experiment, memories to measure: "
            "host, dram, optane, a platform file.",
        ),
    ],
    experiment: Annotated[
        str | None, typer.Option(help=f"Measure memories with it: {', '.join(_USUAL)}, or another with its parameters.")
    ] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="NAME=VALUES", help="A parameter of the experiment: size=64..4096."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for a page of figures, and the table.")] = None,
    span: Annotated[str, typer.Option(help="Bytes that each thread works in, on the host.")] = HostOptions.span,
    precision: Annotated[
        str, typer.Option(help="Half-width of a median's interval, on the host.")
    ] = HostOptions.precision,
    time_limit: Annotated[float, typer.Option(help="Seconds that a point may take, on the host.")] = 2.0,
) -> None:
    """Put memories side by side: their values, ratios to the first, and where one overtakes another."""
    if out:
        make_folder(out)
    if experiment is None:
        if parameter:
            raise XplineError(f"--with {parameter[0]}: needs --experiment")
        tables = _files(what)
    else:
        options = HostOptions(span=span, precision=precision, time_limit=time_limit)
        tables = {"measured": _measured(what, experiment, parameter or [], options)}
    found = line_up(tables)
    if len(found.memories) < 2:
        raise XplineError(f"compare: {found.memories[0]} alone; name another memory, or another table")
    _print(found)
    if out:
        from xpline.report.compare import write_comparison  # drawing takes long to load

        page = write_comparison(found, pl.concat(tables.values(), how="diagonal_relaxed"), out)
        terminal.print(f"page: {page}", soft_wrap=True)


def _files(names: list[str]) -> dict[str, pl.DataFrame]:
    paths = [Path(name) for name in names]
    for path in paths:
        if not path.suffix:
            raise XplineError(f"{path}: is no file of results; to measure memories, name an --experiment")
    stems = [path.stem for path in paths]
    unique = len(set(stems)) == len(stems)
    return {path.stem if unique else str(path): results.read(path) for path in paths}


def _measured(names: list[str], experiment: str, given: list[str], options: HostOptions) -> pl.DataFrame:
    parameters = dict(_USUAL.get(experiment, {}))
    for text in given:
        name, equals, values = text.partition("=")
        if not equals or name not in READERS:
            raise XplineError(f"--with {text}: write NAME=VALUES with a name out of {', '.join(READERS)}")
        parameters[name] = values
    points = bench.points(experiment, **parameters)
    memories = [options.host(name) if name == "host" or name.startswith("host:") else name for name in names]
    total, done = len(names) * len(points), itertools.count(1)
    with counting(experiment) as progress:
        return bench.run(memories, points, progress=lambda *_: progress(next(done), total))


def _print(found: Comparison) -> None:
    ratios = found.ratios()
    if not ratios.height:
        raise XplineError("compare: the tables share no point; measure both with the same parameters")
    console = Console(width=None if terminal.is_terminal else 200, highlight=False)
    first, *others = found.memories
    for (metric,), rows in ratios.group_by("metric", maintain_order=True):
        name, unit, _ = METRICS[metric]
        table = Table(box=None, pad_edge=False, title=f"{name} ({unit})", title_justify="left")
        settings = [one for one in found.settings() if rows[one].null_count() < rows.height]
        shown = [one for one in settings if rows[one].n_unique() > 1 or one == "experiment"]
        ratio = [f"{other} / {first}" for other in others]
        for one in [*shown, *found.memories, *ratio]:
            table.add_column(one, justify="right" if rows[one].dtype.is_numeric() else "left")
        for row in rows.iter_rows(named=True):
            table.add_row(
                *("" if row[one] is None else str(row[one]) for one in shown),
                *("" if row[one] is None else f"{row[one]:,.1f}" for one in found.memories),
                *("" if row[one] is None else f"{row[one]:.2f}" for one in ratio),
            )
        console.print(table, "")
    for one in found.crossings():
        where = f"{one.experiment}{', ' if one.where else ''}{one.where}"
        console.print(f"{where}: {one.before} is ahead up to {one.axis} {one.place}, {one.after} from there on")
