"""``xpline platforms`` and ``xpline platform show``: what memories there are, and where their numbers come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from xpline.cli.options import Overrides, parse_overrides
from xpline.cli.output import terminal
from xpline.platform import Entry, Platform, platform_names

app = typer.Typer(help="Look at a platform.", no_args_is_help=True)


def platforms() -> None:
    """List the built-in platforms, and how many values of each are estimates."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column()
    table.add_column(justify="right")
    for name in platform_names():
        platform = Platform(name)
        table.add_row(name, platform.description, f"{len(platform.estimates)} of {len(platform.show())} estimated")
    Console(width=None if terminal.is_terminal else 200, highlight=False).print(table)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="A built-in platform or a platform file.")],
    set: Overrides = None,
    estimates: Annotated[bool, typer.Option("--estimates", help="Only the values that are estimates.")] = False,
) -> None:
    """Print a platform whole: every value, what it means, its source and the line that set it.

    The output is itself a platform file.
    """
    platform = Platform(name, set=parse_overrides(set))
    print(as_toml(platform.estimates if estimates else platform.show()))


def as_toml(entries: Sequence[Entry]) -> str:
    """A platform file of these values, with the meaning above each and the source beside it."""
    sections: dict[str, list[str]] = {}
    for entry in entries:
        section, _, key = entry.key.rpartition(".")
        lines = sections.setdefault(section, [f"\n[{section}]"] if section else [])
        source = f"{entry.source} ({entry.origin})" if entry.source else entry.origin
        lines += [f"# {entry.about}", f"{key} = {entry.value}  # {source}"]
    top = sections.pop("", [])
    return "\n".join([*top, *(line for lines in sections.values() for line in lines)])
