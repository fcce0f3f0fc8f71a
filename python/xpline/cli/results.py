"""``xpline results``: a history of machines and memories."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from rich.console import Console
from rich.table import Table

from xpline import results
from xpline.cli.output import print_table, terminal

app = typer.Typer(help="Keep results of many machines and days in one store, and ask it in SQL.", no_args_is_help=True)

At = Annotated[Path, typer.Option("--store", envvar="XPLINE_RESULTS", help="The store, a DuckDB file.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print as CSV.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print as JSON.")]


@app.command()
def add(
    files: Annotated[list[Path], typer.Argument(help="Tables that --out wrote: .parquet, .csv or .json.")],
    note: Annotated[str | None, typer.Option(help="A word to remember them by.")] = None,
    store: At = results.USUAL,
) -> None:
    """Add tables of results to the store."""
    tables = [(path, results.read(path)) for path in files]  # all are read before one is kept
    for path, table in tables:
        number = results.Store(store).add(table, path.name, note)
        terminal.print(f"{path}: kept as {number}, {table.height} rows", soft_wrap=True)


@app.command("list")
def list_(store: At = results.USUAL, as_csv: AsCsv = False, as_json: AsJson = False) -> None:
    """List what is kept."""
    _print(results.Store(store).runs(), as_csv, as_json)


@app.command()
def show(
    number: Annotated[int, typer.Argument(help="Number of a table, as list gives it.")],
    store: At = results.USUAL,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
) -> None:
    """Print one table."""
    table = results.Store(store).show(number)
    if as_csv or as_json:
        _print(table, as_csv, as_json)
    else:
        print_table(table)


@app.command()
def query(
    sql: Annotated[str, typer.Argument(help="A query over the tables results (with run) and runs.")],
    store: At = results.USUAL,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
) -> None:
    """Ask the store in SQL; a query cannot change it.

    For example: SELECT platform, op, max(bandwidth_mib_s) FROM results GROUP BY ALL
    """
    _print(results.Store(store).query(sql), as_csv, as_json)


def _print(table: pl.DataFrame, as_csv: bool, as_json: bool) -> None:
    if as_json:
        print(table.write_json())
    elif as_csv:
        sys.stdout.write(table.write_csv())
    else:
        drawn = Table(box=None, pad_edge=False)
        for name, kind in table.schema.items():
            drawn.add_column(name, justify="right" if kind.is_numeric() else "left")
        for row in table.iter_rows():
            drawn.add_row(*("" if value is None else _text(value) for value in row))
        Console(width=None if terminal.is_terminal else 200, highlight=False).print(drawn)


def _text(value: object) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else str(value)
