"""``xpline trace``: traces from one format to another, and what is in them."""

from __future__ import annotations

import json as to_json
from pathlib import Path
from typing import Annotated, Any

import typer

from xpline import files, trace
from xpline.cli.options import Clock, Format, Geometry
from xpline.cli.reading import reading

app = typer.Typer(help="Look at memory traces, and convert them.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(help="The trace to read, plain or compressed with zstd.", metavar="IN")],
    target: Annotated[Path, typer.Argument(help="The file to write; NAME.zst is compressed.", metavar="OUT")],
    format: Format = "auto",
    to: Annotated[str, typer.Option(help="Format to write.")] = "xpline",
    lossy: Annotated[bool, typer.Option("--lossy", help="Leave out what the format cannot hold.")] = False,
    clock: Clock = None,
    geometry: Geometry = None,
    json: Json = False,
) -> None:
    """Write a trace in another format."""
    files.check_writable(target)
    with reading("convert") as progress:
        done = trace.convert(
            source, target, to, lossy, format=format, clock=clock, geometry=geometry, progress=progress
        )
    if json:
        print(to_json.dumps(done))
        return
    print(f"{done['from']} -> {done['to']}: {done['written']:,} records, {done['bytes']:,} bytes")
    if done["changed"] or done["dropped"]:
        print(
            f"of {done['records']:,} records, {done['changed']:,} lost something and {done['dropped']:,} were left out"
        )


@app.command()
def info(
    file: Annotated[Path, typer.Argument(help="The trace, plain or compressed with zstd.", metavar="FILE")],
    format: Format = "auto",
    geometry: Geometry = None,
    json: Json = False,
) -> None:
    """Say what is in a trace. The whole file is read and checked."""
    with reading("info") as progress:
        found = trace.info(file, format=format, geometry=geometry, progress=progress)
    if json:
        print(to_json.dumps(found))
        return
    for name, value in _described(found).items():
        print(f"{name:<14}{value}")


def _described(found: dict[str, Any]) -> dict[str, str]:
    """What was found, in words."""
    described = {
        "format": found["format"] + (", compressed" if found["compressed"] else ""),
        "level": found["level"],
        "records": f"{found['records']:,}",
    }
    described |= {f"  {kind}": f"{count:,}" for kind, count in found["kinds"].items()}
    described["threads"] = f"{found['threads']:,}"
    described["bytes"] = f"{found['bytes']:,}"
    if found["instructions"]:
        described["instructions"] = f"{found['instructions']:,}"
    if found["lowest_address"] is not None:
        described["addresses"] = f"{found['lowest_address']:#x} to {found['end_address']:#x}"
    if found["timed"]:
        tick = f", {found['tick_fs'] / 1000:g} ps each" if found["tick_fs"] else " of unknown length"
        described["times"] = f"{found['first_tick']:,} to {found['last_tick']:,} ticks{tick}"
    return described
