"""A quick look at the memory of this machine: what a minute can tell."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl

from xpline import bench
from xpline.bench.points import Point
from xpline.errors import XplineError
from xpline.host.host import Host
from xpline.host.machine import Machine

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

#: Models that the host is put beside.
MODELS = ("dram", "optane")

#: Seconds that the points on the host may take together, of the 90 s that a look takes at most.
BUDGET = 30.0

#: The most a model runs for a point, in requests: what it does not know to 1 % by then is not missed in a figure.
_REQUESTS = 200_000

#: Pauses of threads that load the memory, in core clocks.
_DELAYS = [0, 100, 300, 1000, 5000]

#: Cores of the models.
_MODEL_CORES = 24

#: Bytes that threads work in, at most: enough to miss every cache.
_SPAN = GIB // 2


@dataclass(frozen=True)
class Look:
    """The machine, and the points on it and on the models."""

    machine: Machine
    table: pl.DataFrame

    @property
    def host(self) -> pl.DataFrame:
        """The rows of the machine."""
        return self.table.filter(source="host")

    def latencies(self) -> dict[str, float]:
        """Latency of each level that the CPU names, and of memory, in ns: that of a region which fits with room."""
        chase = self.host.filter(experiment="chase").sort("region")
        curve = dict(zip(chase["region"].to_list(), chase["latency_mean_ns"].to_list(), strict=True))
        found = {}
        for name, held in self.machine.caches().items():
            fits = [region for region in curve if region <= held // 2]
            if fits:
                found[name] = curve[max(fits)]
        if curve:
            found["memory"] = curve[max(curve)]
        return found

    def best(self) -> dict[str, tuple[float, int]]:
        """The highest bandwidth of each op, MiB/s, with the threads that reached it."""
        rows = self.host.filter(experiment="stride").sort("bandwidth_mib_s")
        return {row["op"]: (row["bandwidth_mib_s"], row["threads"]) for row in rows.iter_rows(named=True)}

    def persists(self) -> pl.DataFrame:
        """What it costs to write and to flush, by size and instruction."""
        columns = ["op", "flush_by", "size", "latency_mean_ns", "ci_low", "ci_high"]
        return self.host.filter(experiment="persist-latency").select(columns)

    def noisy(self) -> list[str]:
        """What disturbed points of the host, in words."""
        return self.host["noise"].drop_nulls().to_list()


def look(
    make: Callable[..., Host],
    models: tuple[str, ...] = MODELS,
    progress: Callable[[int, int], object] = lambda *_: None,
) -> Look:
    """Measure the host with :func:`plan`'s points, and run them on the models.

    ``make`` is given options of :class:`Host` and returns the target: so the caller says which memory, and where.
    """
    machine = Machine.here()
    probe = make(span=_SPAN)
    flushes = machine.environment["flushes"] or ["none"]
    points = plan(probe.cpus, _span(machine, probe.cpus))
    variants = [points["usual"], *([points["flush"]] * max(0, len(flushes) - 1))]
    count = sum(map(len, variants))
    time_limit = BUDGET / count
    modelled = on_models(points["usual"]) if models else []
    total = count + len(models) * len(modelled)
    done = itertools.count(1)
    tell = lambda *_: progress(next(done), total)  # noqa: E731
    tables = []
    for flush, group in zip(flushes, variants, strict=False):
        span = _span(machine, probe.cpus)
        host = make(flush=flush, span=span, time_limit=time_limit, window=min(0.002, time_limit / 12))
        tables.append(bench.run(host, group, progress=tell))
    tables += [bench.run(name, modelled, progress=tell) for name in models]
    return Look(machine, pl.concat(tables, how="diagonal_relaxed"))


def plan(cpus: int, span: int) -> dict[str, list[Point]]:
    """The points of a look, and those that are repeated with each way to flush.

    >>> {point["experiment"] for point in plan(2, 1 << 30)["usual"]} == {
    ...     "chase", "stride", "random", "loaded", "persist-latency"
    ... }
    True
    """
    regions = [4 * KIB << step for step in range(40) if 4 * KIB << step <= span]
    flush: list[Point] = bench.points("persist-latency", op="store+clwb", size=[64, 256, 1024, 4096])
    return {
        "usual": [
            *bench.points("chase", region=regions, cached=True),
            *bench.points("stride", op="load,store,ntstore", size=256, stride=None, fence=0, threads=f"1..{cpus}"),
            *bench.points("random", op="load,ntstore", size=[64, 256, 1024, 4096, 16384], threads=1),
            *loaded_points(cpus - 1, span // 2),
            *bench.points("persist-latency", op="ntstore", size=[64, 256, 1024, 4096]),
            *flush,
        ],
        "flush": flush,
    }


def loaded_points(threads: int, region: int) -> list[Point]:
    """Latency beside so many threads that read as fast as they can, and slower; none on a machine with one CPU."""
    if threads < 1:
        return []
    return bench.points(
        "loaded",
        mix="1:0",
        op="ntstore",
        pattern="random",
        delay=_DELAYS,
        region=min(region, GIB),
        threads=threads,
    )


def on_models(points: list[Point]) -> list[Point]:
    """The points as models run them: every other region, and as many threads as their cores.

    >>> {point["threads"] for point in on_models(plan(2, 1 << 30)["usual"]) if point["experiment"] == "stride"}
    {1, 2, 4, 8, 16, 24}
    """
    regions = sorted(point["region"] for point in points if "region" in point)
    few = {*regions[::2], regions[-1]}
    chase = [point for point in points if point.get("region") in few]
    others = [point for point in points if point["experiment"] not in ("chase", "stride", "loaded")]
    loads = loaded_points(_MODEL_CORES - 1, _SPAN) if any(point["experiment"] == "loaded" for point in points) else []
    ops = list(dict.fromkeys(point["op"] for point in points if point["experiment"] == "stride"))
    threads = bench.points("stride", op=ops, size=256, stride=None, fence=0, threads=f"1..{_MODEL_CORES}")
    return chase + [point | {"max_requests": _REQUESTS} for point in threads + loads + others]


def _span(machine: Machine, threads: int) -> int:
    """Bytes for each thread: many times the caches, and no more than a third of the memory for all."""
    memory: Any = machine.environment["memory_bytes"]
    if not memory:
        raise XplineError("host: the system does not tell how much memory it has")
    span = min(_SPAN, memory // 3 // threads)
    return 1 << max(span.bit_length() - 1, 22)
