"""``xpline host``: a quick look at the memory of this machine."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from xpline.cli.output import terminal
from xpline.cli.progress import counting
from xpline.errors import XplineError
from xpline.files import make_folder
from xpline.host.host import Host, is_target
from xpline.host.look import MODELS, Look, look


def host(
    on: Annotated[str, typer.Option(help="host, host:node=N, host:file=PATH or host:dax=PATH.")] = "host",
    out: Annotated[Path, typer.Option(help="Folder for the page, its figures and the results.")] = Path("xpline-host"),
    models: Annotated[
        str, typer.Option(help="Models to put it beside, separated by commas; empty for none.")
    ] = ",".join(MODELS),
    pages: Annotated[str, typer.Option(help="Pages: transparent, 4KiB, 2MiB or 1GiB.")] = "transparent",
    cpus: Annotated[
        str | None, typer.Option(help="CPUs that threads are pinned to, such as 0-3,8.", show_default="all allowed")
    ] = None,
    destroy: Annotated[bool, typer.Option("--destroy", help="Let a device be overwritten.")] = False,
) -> None:
    """What memory this machine has: latency by region, bandwidth by threads, what a flush costs; in about a minute."""
    if not is_target(on):
        raise XplineError(f"--on {on}: is no memory of this machine; write host, host:node=N, host:file=PATH ...")
    if on.startswith("host:block="):
        raise XplineError(f"--on {on}: a look needs memory that is mapped; use xpline bench for block targets")
    make_folder(out)
    from xpline.report.host import write_look  # drawing takes long to load

    def make(**options: object) -> Host:
        return Host(on, pages=pages, cpus=cpus, destroy=destroy, **options)

    beside = tuple(name.strip() for name in models.split(",") if name.strip())
    with counting("host") as progress:
        seen = look(make, beside, progress)
    _print(seen)
    page = write_look(seen, out)
    terminal.print(f"page: {page}", soft_wrap=True)


def _print(seen: Look) -> None:
    console = Console(width=None if terminal.is_terminal else 200, highlight=False)
    facts = Table(box=None, pad_edge=False, show_header=False)
    for name, value in seen.machine.facts().items():
        facts.add_row(name, value)
    console.print(facts, "")
    console.print("latency: " + ", ".join(f"{name} {ns:.3g} ns" for name, ns in seen.latencies().items()))
    best = (
        f"{op} {bandwidth / 1024:.1f} GiB/s ({threads} thread{'' if threads == 1 else 's'})"
        for op, (bandwidth, threads) in seen.best().items()
    )
    console.print("bandwidth: " + ", ".join(best))
    single = seen.persists().filter(size=64)
    costs = (f"{row['flush_by'] or row['op']} {row['latency_mean_ns']:.0f} ns" for row in single.iter_rows(named=True))
    console.print("64 B made persistent: " + ", ".join(costs))
    if seen.noisy():
        terminal.print(f"[yellow]the host was not quiet[/] during {len(seen.noisy())} of {seen.host.height} points")
