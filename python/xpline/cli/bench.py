"""``xpline bench``: the experiments, a command each."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any

import typer

from xpline import bench
from xpline.bench import relief
from xpline.bench.loads import DELAYS
from xpline.cli import workload
from xpline.cli.caveats import persists, warn_budget, warn_volatile
from xpline.cli.common import Common, with_common
from xpline.cli.estimates import note_estimates
from xpline.cli.output import terminal
from xpline.cli.progress import counting
from xpline.errors import IncompleteError, Interrupted

SIZES = "64, 4KiB, 64..4096 (doubling), or a list"
COUNTS = "4, 1..8 (doubling), or a list"

app = typer.Typer()
workload.install(app)

Op = Annotated[str, typer.Option(help="load, ntstore, store, store+clwb, or a list.")]
Size = Annotated[str, typer.Option(help=f"Bytes of an access: {SIZES}.")]
Threads = Annotated[str, typer.Option(help=f"Threads: {COUNTS}.")]
Pattern = Annotated[str, typer.Option(help="sequential, random, or a list.")]


@dataclass
class Sweep:
    """An experiment and the values of its parameters."""

    experiment: str
    parameters: dict[str, str | bool | None]


def experiment(command: Callable[..., Sweep]) -> Callable[..., None]:
    """Make a command of a function that says what to run: add the common options, run it, and hand out the table."""

    @wraps(command)
    def measure(common: Common, **arguments: Any) -> None:
        _measure(command(**arguments), common)

    own = dict(inspect.signature(command, eval_str=True).parameters)
    return app.command(command.__name__.replace("_", "-"))(with_common(measure, own))


@experiment
def random(op: Op = "load", size: Size = "64", threads: Threads = "1") -> Sweep:
    """Bandwidth of accesses at random addresses, aligned to their size."""
    return Sweep("random", {"op": op, "size": size, "threads": threads})


@experiment
def stride(
    op: Op = "load",
    size: Size = "64",
    stride: Annotated[
        str | None, typer.Option(help="Bytes from one access to the next; 0 repeats the place.", show_default="size")
    ] = None,
    fence: Annotated[str, typer.Option(help="Bytes of an access from one sfence to the next; 0 for none.")] = "0",
    threads: Threads = "1",
) -> Sweep:
    """Bandwidth of accesses at a stride; without one, of sequential accesses."""
    return Sweep("stride", {"op": op, "size": size, "stride": stride, "fence": fence, "threads": threads})


@experiment
def flush(
    pattern: Pattern = "sequential",
    size: Size = "256",
    clwb: Annotated[str, typer.Option(help="Bytes from one flush to the next.")] = "64",
    fence: Annotated[str | None, typer.Option(help="Bytes from one sfence to the next.", show_default="size")] = None,
    threads: Threads = "1",
) -> Sweep:
    """Bandwidth of stores with a clwb and an sfence at intervals."""
    return Sweep("flush", {"pattern": pattern, "size": size, "clwb": clwb, "fence": fence, "threads": threads})


@experiment
def align(
    op: Op = "ntstore",
    size: Size = "256",
    binding: Annotated[
        str,
        typer.Option(
            help="DIMMs a thread touches: shared-all, own-all, own-dimm, shared-imc, own-pair, ni-shared-all, "
            "ni-own-dimm, or a list."
        ),
    ] = "own-all",
    threads: Threads = "6",
    fence: Annotated[str, typer.Option(help="Bytes of an access from one sfence to the next; 0 for none.")] = "0",
    fenced: Annotated[bool, typer.Option("--fenced", help="End each access in an mfence.")] = False,
) -> Sweep:
    """Bandwidth of random accesses by threads bound to DIMMs."""
    return Sweep(
        "align", {"op": op, "size": size, "binding": binding, "fence": fence, "threads": threads, "fenced": fenced}
    )


@experiment
def latency(
    op: Annotated[str, typer.Option(help="load, store+clwb, ntstore, or a list.")] = "load",
    pattern: Pattern = "random",
) -> Sweep:
    """Latency of single accesses of one idle core, each fenced."""
    return Sweep("latency", {"op": op, "pattern": pattern})


@experiment
def xpbuffer(lines: Annotated[str, typer.Option(help=f"256 B lines of the region: {COUNTS}.")] = "64") -> Sweep:
    """Write amplification of half-line rounds over a region."""
    return Sweep("xpbuffer", {"lines": lines})


@experiment
def persist_latency(
    op: Annotated[str, typer.Option(help="ntstore, store+clwb, or a list.")] = "ntstore",
    size: Size = "64",
) -> Sweep:
    """Latency of a sequential write and the sfence that makes it persistent."""
    return Sweep("persist-latency", {"op": op, "size": size})


@experiment
def chase(
    region: Annotated[str, typer.Option(help=f"Bytes that are read: {SIZES}.")] = "256..64MiB",
    mask: Annotated[
        str, typer.Option(help="Address bits that stay 0, as their sum: 4KiB is bit 12; 0 for none, or a list.")
    ] = "0",
    cached: Annotated[bool, typer.Option("--cached", help="Through the caches instead of past them.")] = False,
) -> Sweep:
    """Latency of loads that wait for each other, against the region they fall in."""
    return Sweep("chase", {"region": region, "mask": mask, "cached": cached})


@experiment
def replacement(
    buffer: Annotated[str, typer.Option(help="xpbuffer, ait, or a list.")] = "xpbuffer",
    order: Annotated[
        str, typer.Option(help="In which lines are read again: same, reverse, random, or a list.")
    ] = "same,reverse,random",
    lines: Annotated[str, typer.Option(help=f"Lines that are read: {COUNTS}.")] = "16,32,64,65,96,128",
) -> Sweep:
    """Share of lines that a buffer of one DIMM has given up when they are read again."""
    return Sweep("replacement", {"buffer": buffer, "order": order, "lines": lines})


@experiment
def wear(
    op: Annotated[str, typer.Option(help="ntstore, store+clwb, or a list.")] = "ntstore",
    size: Annotated[str, typer.Option(help=f"Bytes of a write: {SIZES}.")] = "256",
) -> Sweep:
    """How often, and for how long, wear levelling stalls writes to one place."""
    return Sweep("wear", {"op": op, "size": size})


@experiment
def tail(
    op: Annotated[str, typer.Option(help="ntstore, store+clwb, or a list.")] = "ntstore",
    region: Annotated[str, typer.Option(help=f"Bytes of the hot spot: {SIZES}.")] = "256..64MiB",
) -> Sweep:
    """Tail latency of 64 B writes round a hot spot."""
    return Sweep("tail", {"op": op, "region": region})


Mix = Annotated[str, typer.Option(help="Lines read to lines written: 2:1, 1:0 (reads), 0:1 (writes), or a list.")]
Write = Annotated[
    str, typer.Option(help="What a write is: ntstore, store (left to the caches), store+clwb, or a list.")
]
Buffer = Annotated[str, typer.Option(help=f"Bytes of a thread's buffer for reads, and of that for writes: {SIZES}.")]


@experiment
def mix(
    mix: Mix = "1:0,4:1,3:1,2:1,1:1",
    op: Write = "store",
    pattern: Pattern = "sequential",
    size: Size = "64",
    region: Buffer = "1GiB",
    threads: Threads = "1,4",
) -> Sweep:
    """Bandwidth of reads and writes in a ratio."""
    return Sweep("mix", {"mix": mix, "op": op, "pattern": pattern, "size": size, "region": region, "threads": threads})


@experiment
def loaded(
    mix: Mix = "1:0",
    op: Write = "store",
    pattern: Pattern = "sequential",
    delay: Annotated[
        str,
        typer.Option(help=f"Core clocks that each thread pauses after a line: {COUNTS}.", show_default="0 to 80000"),
    ] = ",".join(map(str, DELAYS)),
    region: Buffer = "1GiB",
    threads: Annotated[
        str, typer.Option(help=f"Threads that load the memory, beside the one that is timed: {COUNTS}.")
    ] = "18",
) -> Sweep:
    """Latency of loads against the bandwidth of others, as their pauses shorten."""
    return Sweep(
        "loaded", {"mix": mix, "op": op, "pattern": pattern, "delay": delay, "region": region, "threads": threads}
    )


def _measure(sweep: Sweep, common: Common) -> None:
    common.check_outputs()
    points = bench.points(sweep.experiment, seed=common.seed, max_requests=common.max_requests, **sweep.parameters)
    platforms = common.platforms()
    warn_volatile(platforms, any(map(persists, points)))
    warn_budget(platforms)
    common.check_timeline(len(points), len(platforms))
    shown = [point | {"timeline": True} for point in points] if common.timeline else points

    def count(_: int, row: dict[str, Any]) -> None:
        if "timeline" in row:
            common.write_timeline(row)
        on_progress(next(done), total)

    try:
        with counting(sweep.experiment) as on_progress:
            runs = 1 + len(relief.PARTS) if common.explain else 1
            total, done = len(platforms) * len(points) * runs, itertools.count(1)
            result = bench.run(platforms, shown, common.jobs, count)
            if common.explain:
                result = relief.explain(result, platforms, points, common.jobs, count)
    except Interrupted as stopped:
        common.hand_out(stopped.table)
        terminal.print(stopped)
        raise
    except IncompleteError as failed:
        if failed.table.height:
            common.hand_out(failed.table)
        raise
    common.hand_out(result)
    note_estimates(platforms)
