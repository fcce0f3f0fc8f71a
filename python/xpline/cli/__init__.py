"""The command line: a file a command, each thin over the Python API."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.markup import escape

from xpline import __version__
from xpline.cli import bench, platforms, reproduce, validate
from xpline.cli.output import terminal
from xpline.errors import XplineError

#: Exit status after bad input; nothing was written.
BAD_INPUT = 2
#: Exit status after Ctrl-C; what was complete is written.
INTERRUPTED = 130

app = typer.Typer(
    help="A laboratory for persistent and far memory: measure it, model it, check the model.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(bench.app, name="bench")
app.command("platforms")(platforms.platforms)
app.add_typer(platforms.app, name="platform")
app.command("validate")(validate.validate)
app.command("reproduce")(reproduce.reproduce)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"xpline {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; always ends in ``SystemExit``."""
    try:
        app(arguments)
    except XplineError as error:
        terminal.print(f"[red]xpline:[/] {escape(str(error))}", soft_wrap=True)
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
