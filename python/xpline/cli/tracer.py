"""``xpline tracer install`` and ``xpline tracer status``: what runs the programs of ``xpline run``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from xpline.cli.output import terminal
from xpline.cli.progress import counting
from xpline.tracer import folder, installed

app = typer.Typer(help="Build and look at the tracer, which xpline run needs.", no_args_is_help=True)


@app.command()
def install(
    source: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A release archive of QEMU 10's source; else Debian's is fetched."),
    ] = None,
) -> None:
    """Build the tracer: some minutes, once; what is there already is kept.

    It goes into the user's cache folder, and an interrupted build goes on where it stopped.
    """
    from xpline.tracer.install import install as build

    with counting("tracer") as update:
        tracer = build(source, update)
    terminal.print(f"the tracer is ready: QEMU {tracer.version} in {tracer.qemu.parent}", soft_wrap=True)


@app.command()
def status() -> None:
    """Say what is installed, and whether it is whole; exit status 2 if it is not ready."""
    tracer = installed()
    if tracer is None:
        which = " for these sources" if any(folder().glob("installed-*.json")) else ""
        print(f"not installed{which} (it would be in {folder()}); run `xpline tracer install`")
        raise typer.Exit(2)
    kind = "" if tracer.patched else " (without xpline's additions, which are for QEMU 10.0: tracing costs more)"
    print(f"qemu    {tracer.version}  {tracer.qemu}{kind}")
    print(f"source  sha256 {tracer.source_sha256}")
    print(f"plugin  {tracer.plugin}")
    faults = tracer.faults()
    for fault in faults:
        print(f"fault   {fault}; run `xpline tracer install`")
    print("not ready" if faults else "ready")
    if faults:
        raise typer.Exit(2)
