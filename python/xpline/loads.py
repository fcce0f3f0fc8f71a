"""The points that load a memory: from the other socket, in place of Optane, and in Memory Mode. Declared once, as in
:mod:`xpline.sweeps`.
"""

from __future__ import annotations

from itertools import chain, product
from typing import Any

from xpline.bench.loads import DELAYS
from xpline.cases import Case, case

#: Idle latency over the link, by (op, pattern).
REMOTE_LATENCY = {
    (op, pattern): case("optane-remote", {"experiment": "latency", "op": op, "pattern": pattern})
    for op, pattern in [
        ("load", "sequential"), ("load", "random"), ("ntstore", "sequential"), ("store+clwb", "sequential"),
    ]
}  # fmt: skip


def _sequential(platform: str, op: str, threads: int) -> Case:
    return case(platform, {"experiment": "stride", "op": op, "size": 256, "stride": 256, "threads": threads})


#: Sequential accesses at the thread counts that are best near and far, by (op, socket).
SOCKET_PEAKS = {
    ("load", "near"): _sequential("optane", "load", 16), ("load", "far"): _sequential("optane-remote", "load", 10),
    ("ntstore", "near"): _sequential("optane", "ntstore", 4),
    ("ntstore", "far"): _sequential("optane-remote", "ntstore", 4),
}  # fmt: skip

#: The mixes of the study's figure, from reads alone to writes alone, as its file names them.
MIXES = {"R": "1:0", "R:W (4:1)": "4:1", "R:W (3:1)": "3:1", "R:W (2:1)": "2:1", "R:W (1:1)": "1:1", "W": "0:1"}

#: In that figure one thread reads 4.7 GiB/s where it reads 2.9 in the sweep: prefetchers must have been on.
PREFETCHED = ("prefetch.stream=true",)


def mixed(platform: str, mix: str, op: str, threads: int, overrides: tuple[str, ...] = (), **other: Any) -> Case:
    """Reads and writes in a ratio."""
    point = {"experiment": "mix", "mix": mix, "op": op, "pattern": "sequential", "threads": threads}
    return case(platform, point | other, overrides)


#: Bandwidth by (platform, threads, mix). Stores go through the caches; writes alone are ntstores.
SOCKET_MIXES = {
    (platform, threads, name): mixed(
        platform,
        mix,
        "ntstore" if name == "W" else "store",
        threads,
        () if name == "W" else PREFETCHED,
    )
    for platform in ("optane", "optane-remote")
    for threads in (1, 4)
    for name, mix in MIXES.items()
}

#: The search for the largest gap between sockets: mixes, threads and sizes, by memory, socket and these.
_GAPS = [
    {"mix": mix, "op": op, "threads": threads, **walk}
    for mix, op in (("1:0", "load"), ("0:1", "ntstore"), ("1:1", "store"), ("1:1", "store+clwb"), ("4:1", "store+clwb"))
    for threads in (1, 4, 16, 24)
    for walk in ({"pattern": "sequential"}, {"pattern": "random", "size": 256})
]
GAPS = {
    memory: [
        tuple(
            case(platform, {"experiment": "mix", "max_requests": 1 << 18} | point)
            for platform in (memory, f"{memory}-remote")
        )
        for point in _GAPS
    ]
    for memory in ("optane", "dram")
}


def _loaded(platform: str, mix: str, delay: int, overrides: tuple[str, ...] = (), **other: Any) -> Case:
    op = "load" if mix == "1:0" else "ntstore" if mix == "0:1" else "store"
    point = {"experiment": "loaded", "mix": mix, "op": op, "pattern": "sequential", "delay": delay, "threads": 18}
    return case(platform, point | other, overrides)


#: Latency beside sequential ntstores against their pauses: Optane, and what stood in for it, by (platform, delay).
STAND_INS = ("dram", "dram-remote", "pmep")
#: Threads beside the one that is timed: the emulator has few cores.
WRITERS = {"optane": 18, "dram": 18, "dram-remote": 18, "pmep": 7}
WRITE_LOADED = {
    (platform, delay): _loaded(platform, "0:1", delay, threads=threads)
    for platform, threads in WRITERS.items()
    for delay in DELAYS
}

#: Latency under load of Optane at the largest power budget, by (pattern, mix, delay).
LOADED = {
    (pattern, mix, delay): _loaded("optane", mix, delay, ("optane.power.budget=18W",), pattern=pattern)
    for pattern in ("sequential", "random")
    for mix in ("1:0", "2:1")
    for delay in (0, 50, 100, 200, 300, 400, 500, 700, 1000, 1700, 5000, 20000)
}

#: One line after the other from a memory that is as good as idle, by platform and pattern; with so few frames of near
#: memory that nearly every line has to give way before it is read again.
IDLE = {
    (name, pattern): case(
        platform,
        {"experiment": "loaded", "mix": "1:0", "op": "load", "pattern": pattern, "delay": 1_000_000, "threads": 1,
         "max_requests": 60_000},
        overrides,
    )
    for name, platform, overrides in (
        ("dram", "dram", ()), ("optane", "optane", ()), ("hit", "memory-mode", ()),
        ("miss", "memory-mode", ("near.size=64KiB",)),
    )
    for pattern in ("sequential", "random")
}  # fmt: skip

#: Buffers of a thread for about so many percent of misses, in GB, by (mix, percent): Hot Chips 31, 2019.
FOOTPRINTS = {
    ("1:0", 0): 0.1, ("1:0", 10): 1.0, ("1:0", 25): 4.5, ("1:0", 40): 9.0,
    ("2:1", 0): 0.1, ("2:1", 10): 0.7, ("2:1", 25): 1.8, ("2:1", 40): 4.5,
}  # fmt: skip
PERCENTS = (0, 10, 25, 40)

#: The threads are not stated. So many, beside the one that is timed, have all four between contiguous and random pages.
FOOTPRINT_THREADS = 13

#: DRAM and footprints are smaller by this factor, by percent: what meets in a frame stays the same. Small footprints
#: are shrunk less, lest chance decide how many of a few pages meet. Caches are smaller, too.
SCALES = {0: 256, 10: 1024, 25: 2048, 40: 8192}
_CACHES = ("l3.size=132KiB", "l2.size=16KiB", "l1d.size=4KiB")

#: Memory Mode under load, by (pages, mix, percent, delay).
NEAR_LOADED = {
    (pages, mix, percent, delay): _loaded(
        "memory-mode",
        mix,
        delay,
        (*_CACHES, f"near.size={16 * 1024 // SCALES[percent]}MiB", f"near.pages={pages}"),
        region=round(gigabytes * (1 << 30) / SCALES[percent] / 64) * 64,
        threads=FOOTPRINT_THREADS,
    )
    for pages, ((mix, percent), gigabytes), delay in product(
        ("contiguous", "random"), FOOTPRINTS.items(), (0, 50, 100, 200, 400, 1000)
    )
}

#: Power budgets, and the bandwidth of ntstores of four threads under each.
POWER = {
    watts: case(
        "optane",
        {"experiment": "stride", "op": "ntstore", "size": 256, "stride": 256, "threads": 4},
        (f"optane.power.budget={watts}W",),
    )
    for watts in (12, 15, 18)
}

#: What the emulator's machine is without what the emulator does to its DRAM.
_PLAIN = ("dram.controller=0ns", "dram.write_gap=0.4ns")

#: Peak bandwidth of ntstores, and idle latency: the emulator, and the same machine without it.
EMULATED_WRITES = {
    name: case("pmep", {"experiment": "stride", "op": "ntstore", "size": 256, "stride": 256, "threads": 8}, overrides)
    for name, overrides in (("pmep", ()), ("dram", _PLAIN))
}
EMULATED_LOADS = {
    name: case("pmep", {"experiment": "latency", "op": "load", "pattern": "sequential"}, overrides)
    for name, overrides in (("pmep", ()), ("dram", _PLAIN))
}


def cases() -> list[Case]:
    """Every case."""
    single = [
        REMOTE_LATENCY, SOCKET_PEAKS, SOCKET_MIXES, WRITE_LOADED, LOADED, IDLE, NEAR_LOADED, POWER, EMULATED_WRITES,
        EMULATED_LOADS,
    ]  # fmt: skip
    return [*chain.from_iterable(group.values() for group in single), *chain(*chain(*GAPS.values()))]
