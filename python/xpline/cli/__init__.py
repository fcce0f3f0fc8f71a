"""The command line: a file a command, each thin over the Python API."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from xpline import __version__
from xpline.errors import XplineError

#: Exit status after bad input; nothing was written.
BAD_INPUT = 2
#: Exit status after Ctrl-C; what was complete is written.
INTERRUPTED = 130

#: Each command, and the module of this package that holds it under the name after the colon. A module is imported when
#: its command is asked for, so that no command waits for libraries that only others need.
COMMANDS = {
    "bench": "bench:app",
    "host": "host:host",
    "compare": "compare:compare",
    "results": "results:app",
    "platforms": "platforms:platforms",
    "platform": "platforms:app",
    "validate": "validate:validate",
    "fit": "fit:fit",
    "reproduce": "reproduce:reproduce",
    "run": "run:run",
    "replay": "replay:replay",
    "trace": "trace:app",
    "tracer": "tracer:app",
}


class _Commands(TyperGroup):
    """The commands of :data:`COMMANDS`, imported one by one."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = dict.fromkeys(COMMANDS)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command = getattr(import_module(f"xpline.cli.{module}"), name)
        if isinstance(command, typer.Typer):
            loaded = get_group(command)
            loaded.name = cmd_name
            return loaded
        single = typer.Typer(add_completion=False)
        single.command(cmd_name)(command)
        return get_command(single)


app = typer.Typer(
    cls=_Commands,
    help="A laboratory for persistent and far memory: measure it, model it, check the model.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
        from rich.markup import escape

        from xpline.cli.output import terminal

        terminal.print(f"[red]xpline:[/] {escape(str(error))}", soft_wrap=True)
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
