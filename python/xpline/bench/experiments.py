"""The experiments of LATTester, a function each. Threads work in 2 GiB of their own, 64 B at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict, Unpack

import polars as pl

from xpline.bench.nodes import placements
from xpline.bench.points import points
from xpline.bench.run import Platforms, loaded, run
from xpline.platform import Platform
from xpline.values import Numbers, Words


class Options(TypedDict, total=False):
    """What every experiment takes besides its own parameters."""

    #: Seed of the random addresses (1).
    seed: int
    #: The longest a point may run, in requests of the cores; ``settled`` says whether its mean was stable by then.
    max_requests: int | None
    #: Sockets of the threads and of the memory: 0, 1, "both", or a list; the platform's unless given.
    cpu_node: Numbers | Words | None
    mem_node: Numbers | Words | None
    #: Points that run side by side; all cores of the host by default. The results do not depend on it.
    jobs: int | None
    #: Called with the index and the row of each point as it completes.
    progress: Callable[[int, dict[str, Any]], object] | None


def random(
    platform: Platforms, op: Words = "load", size: Numbers = 64, threads: Numbers = 1, **options: Unpack[Options]
) -> pl.DataFrame:
    """Bandwidth of accesses of ``size`` bytes at random addresses aligned to their size.

    ``op`` is load, ntstore, store (left to the caches) or store+clwb.

    >>> small, whole = random("optane-ni", op="load", size=[64, 256])["bandwidth_mib_s"]
    >>> small < whole  # the media read 256 B whatever was asked for
    True
    """
    return run_experiment(platform, options, "random", op=op, size=size, threads=threads)


def stride(
    platform: Platforms,
    op: Words = "load",
    size: Numbers = 64,
    stride: Numbers | None = None,
    fence: Numbers = 0,
    threads: Numbers = 1,
    **options: Unpack[Options],
) -> pl.DataFrame:
    """Bandwidth of accesses of ``size`` bytes, each ``stride`` bytes after the one before.

    Without ``stride`` the accesses follow each other without gap; 0 repeats the same place. After each ``fence`` bytes
    of an access comes an sfence, or for loads an mfence; 0 is none.

    >>> table = stride("optane-ni", op="ntstore", size=256, threads=[1, 8])
    >>> one, eight = table["ewr"]
    >>> eight < one  # eight writers push each other's lines out of the buffer before they are full
    True
    """
    return run_experiment(platform, options, "stride", op=op, size=size, stride=stride, fence=fence, threads=threads)


def flush(
    platform: Platforms,
    pattern: Words = "sequential",
    size: Numbers = 256,
    clwb: Numbers | None = 64,
    fence: Numbers | None = None,
    threads: Numbers = 1,
    **options: Unpack[Options],
) -> pl.DataFrame:
    """Bandwidth of plain stores, a clwb over them after each ``clwb`` bytes and an sfence after each ``fence`` bytes.

    ``pattern`` is sequential, or random: each access of ``size`` bytes starts at a random address aligned to its size.
    Without ``fence`` (or ``clwb``), it comes once an access.

    >>> flush("optane-ni", size=4096, fence=[256, 4096]).select("clwb", "fence").rows()
    [(64, 256), (64, 4096)]
    """
    return run_experiment(
        platform, options, "flush", pattern=pattern, size=size, clwb=clwb, fence=fence, threads=threads
    )


def align(
    platform: Platforms,
    op: Words = "ntstore",
    size: Numbers = 256,
    binding: Words = "own-all",
    threads: Numbers = 6,
    fence: Numbers = 0,
    fenced: bool = False,
    **options: Unpack[Options],
) -> pl.DataFrame:
    """Bandwidth of random accesses when each thread may touch only some of the DIMMs.

    ``binding`` says which: shared-all, own-all, own-dimm, shared-imc or own-pair over interleaved DIMMs,
    ni-shared-all or ni-own-dimm over DIMMs with an address range each. *own* gives each thread its own buffer; *dimm*
    is one DIMM a thread, *imc* those of one memory controller, *pair* one on each controller. After each ``fence``
    bytes of an access comes an sfence, or for loads an mfence; 0 is none. With ``fenced``, each access ends in an
    mfence.

    >>> table = align("optane", binding=["own-all", "own-dimm"], size=4096, threads=6)
    >>> spread, bound = table["bandwidth_mib_s"]
    >>> bound > spread  # no two writers meet at a DIMM
    True
    """
    return run_experiment(
        platform, options, "align", op=op, size=size, binding=binding, fence=fence, threads=threads, fenced=fenced
    )


def latency(
    platform: Platforms, op: Words = "load", pattern: Words = "random", **options: Unpack[Options]
) -> pl.DataFrame:
    """Latency of single 8-byte accesses of one idle core, each fenced: mean, deviation and percentiles.

    ``op`` is load, store+clwb or ntstore (both on a line that is in the cache); ``pattern`` sequential or random lines.

    >>> latency("dram", op=["load", "ntstore"])["op"].to_list()
    ['load', 'ntstore']
    """
    return run_experiment(platform, options, "latency", op=op, pattern=pattern)


def xpbuffer(platform: Platforms, lines: Numbers = 64, **options: Unpack[Options]) -> pl.DataFrame:
    """Write amplification (``1 / ewr``) of rounds that write the first halves of ``lines`` XPLines, then the second.

    While the lines fit in the buffer, the halves meet there; above, each half costs a write of a whole line.

    >>> fits, exceeds = xpbuffer("optane-ni", lines=[32, 256])["ewr"]
    >>> fits > 0.9 and exceeds < 0.6
    True
    """
    return run_experiment(platform, options, "xpbuffer", lines=lines)


def persist_latency(
    platform: Platforms, op: Words = "ntstore", size: Numbers = 64, **options: Unpack[Options]
) -> pl.DataFrame:
    """Latency of writing ``size`` bytes in order and making them persistent with an sfence, by one idle core.

    ``op`` is ntstore or store+clwb.

    >>> short, long = persist_latency("optane", size=[64, 4096])["latency_mean_ns"]
    >>> short < long
    True
    """
    return run_experiment(platform, options, "persist-latency", op=op, size=size)


def run_experiment(
    platform: Platforms, options: Options, experiment: str, **parameters: Numbers | Words | bool | None
) -> pl.DataFrame:
    """Every combination of the parameters' values, as the public functions hand it on."""
    sweep = points(experiment, seed=options.get("seed", 1), max_requests=options.get("max_requests"), **parameters)
    nodes = placements(options.get("cpu_node"), options.get("mem_node"))
    placed = [
        one.changed(place) if place and isinstance(one, Platform) else one
        for one in loaded(platform)
        for place in (nodes if isinstance(one, Platform) else nodes[:1])
    ]
    return run(placed, sweep, options.get("jobs"), options.get("progress"))
