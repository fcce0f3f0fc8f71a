"""The points behind the figures and the claims: declared once, run once, asked for by whoever draws or judges them.

A sweep is a row of cases that differ in one number (threads, access size, region, ...). Figures and claims name the
same sweeps, so the union of all sweeps is what a reproduction runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any

from xpline import loads
from xpline.cases import Case, Platforms, Row, case

KIB, MIB = 1024, 1024**2


@dataclass(frozen=True)
class Sweep:
    """Cases by the number they differ in, in ascending order."""

    cases: dict[int, Case]

    @property
    def steps(self) -> tuple[int, ...]:
        """The numbers swept."""
        return tuple(self.cases)


class Results:
    """The rows that the cases of a reproduction gave, and the platforms they ran on."""

    def __init__(self, rows: dict[Case, Row], platforms: Platforms) -> None:
        self._rows = rows
        self._platforms = platforms

    def value(self, case: Case, column: str) -> float:
        """One number of one case; ``bandwidth`` is in GiB/s, every other column as in the row."""
        row = self._rows[case]
        return row["bandwidth_mib_s"] / KIB if column == "bandwidth" else row[column]

    def curve(self, sweep: Sweep, column: str = "bandwidth") -> dict[int, float]:
        """A column along a sweep."""
        return {step: self.value(case, column) for step, case in sweep.cases.items()}

    def parameter(self, platform: str, key: str) -> str:
        """A value of a platform as its file writes it."""
        return self._platforms.parameter(platform, key)


def _sweep(platform: str, steps: Iterable[int], point: Callable[[int], dict[str, Any]]) -> Sweep:
    return Sweep({step: case(platform, point(step)) for step in steps})


def _doubling(first: int, last: int) -> list[int]:
    return [first << i for i in range((last // first).bit_length())]


def random_access(platform: str, op: str, size: int, threads: int) -> Case:
    """Accesses of ``size`` bytes at random aligned addresses."""
    return case(platform, {"experiment": "random", "op": op, "size": size, "threads": threads})


def sequential(platform: str, op: str, threads: int, fence: int = 0) -> Case:
    """Accesses of 256 B, each after the one before, with an sfence after each ``fence`` bytes (0 for none)."""
    point = {"experiment": "stride", "op": op, "size": 256, "stride": 256, "threads": threads}
    return case(platform, point | ({"fence": fence} if fence else {}))


#: The operations that are drawn together, in the order of the study's figures.
OPS = ("load", "ntstore", "store+clwb")

#: Idle latency by (platform, op, pattern).
LATENCY = {
    (platform, op, pattern): case(platform, {"experiment": "latency", "op": op, "pattern": pattern})
    for platform in ("dram", "optane")
    for op, pattern in [
        ("load", "sequential"), ("load", "random"), ("ntstore", "sequential"), ("store+clwb", "sequential"),
    ]
}  # fmt: skip

#: Sequential accesses of 256 B against threads, by (platform, op). Those that flush are fenced: the figure has 1.44
#: GB/s a thread on DRAM and Optane alike, which the sweep shows with an sfence after each 256 B; without, it has 1.10.
THREADS = {
    (platform, op): Sweep(
        {
            n: sequential(platform, op, n, fence=256 if op == "store+clwb" else 0)
            for n in (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 20, 24)
        }
    )
    for platform in ("dram", "optane-ni", "optane")
    for op in OPS
}

#: The thread counts at which the study draws bandwidth against access size, by (platform, op): the best for each.
BEST_THREADS = {
    ("dram", "load"): 24, ("dram", "ntstore"): 24, ("dram", "store+clwb"): 24,
    ("optane-ni", "load"): 4, ("optane-ni", "ntstore"): 1, ("optane-ni", "store+clwb"): 2,
    ("optane", "load"): 16, ("optane", "ntstore"): 4, ("optane", "store+clwb"): 12,
}  # fmt: skip

_SIZES = _doubling(64, 2 * MIB)
_SIZES_AROUND_STRIPES = sorted({*_SIZES, *(4 * KIB * n for n in (3, 5, 6, 7, 10, 11, 12, 13, 14))})

#: Random accesses against their size, by (platform, op); finer around the stripes of interleaved memory.
SIZES = {
    (platform, op): Sweep({
        size: random_access(platform, op, size, threads)
        for size in (_SIZES_AROUND_STRIPES if platform == "optane" else _SIZES)
    })
    for (platform, op), threads in BEST_THREADS.items()
}  # fmt: skip

#: One thread on one DIMM, random accesses of 128 KiB: as good as sequential, by op.
PLATEAU = {op: random_access("optane-ni", op, 128 * KIB, 1) for op in OPS}

#: Writes to one DIMM in many ways, whose EWR and bandwidth go together, by (op, size or "sequential", threads).
EWR_GRID = {
    (op, size, threads): (
        sequential("optane-ni", op, threads)
        if size == "sequential"
        else random_access("optane-ni", op, int(size), threads)
    )
    for op in ("ntstore", "store+clwb", "store")
    for size in ("sequential", "64", "128", "256", "1024", "4096")
    for threads in (1, 2, 4, 8, 16)
}

#: Plain and flushed stores of six threads, sequential, on interleaved DIMMs.
CACHED_STORES = {op: sequential("optane", op, 6) for op in ("store", "store+clwb")}

#: The half-line rounds against the XPLines of the region.
XPBUFFER = _sweep(
    "optane-ni",
    (1, 2, 4, 8, 16, 32, 64, 72, 80, 88, 96, 112, 128, 160, 192, 256, 512, 1024, 4096, 8192),
    lambda lines: {"experiment": "xpbuffer", "lines": lines},
)

#: Writes that an sfence makes persistent, against their size, by op: six threads on a DIMM each at random places, as
#: the sweep has the values of the figure (alignment.csv), and the latency of one thread in sequence.
PERSIST_BANDWIDTH = {
    op: _sweep(
        "optane",
        _doubling(64, 4 * KIB),
        lambda size, op=op: {
            "experiment": "align",
            "op": op,
            "size": size,
            "binding": "own-dimm",
            "fence": size,
            "threads": 6,
        },
    )
    for op in ("ntstore", "store+clwb", "store")
}
PERSIST_LATENCY = {
    op: _sweep(
        "optane",
        _doubling(64, 4 * KIB),
        lambda size, op=op: {"experiment": "persist-latency", "op": op, "size": size},
    )
    for op in ("ntstore", "store+clwb")
}

#: Time to move 64 B over the link of the slow DIMM of :data:`QUEUED`, in ns.
SLOW_TRANSFER_NS = 200

_WRITES = [*_doubling(64, 4 * KIB), 16 * KIB, 64 * KIB, 256 * KIB, *_doubling(MIB, 64 * MIB)]

#: Sequential writes of one thread to one DIMM against their size, an sfence after each: clwb of each line while
#: writing ("during"), or of all of them after the write ("after").
SFENCE = {
    when: _sweep(
        "optane-ni",
        _WRITES,
        lambda size, when=when: {
            "experiment": "flush", "pattern": "sequential", "size": size, "fence": size,
            "clwb": 64 if when == "during" else size, "threads": 1,
        },
    )
    for when in ("during", "after")
}  # fmt: skip

#: The threads with which contention at the memory controllers is shown, by op.
SPREAD_THREADS = {"ntstore": 6, "load": 24}

#: Random accesses against their size, each thread on so many of the six DIMMs, by (op, DIMMs).
SPREAD = {
    (op, dimms): _sweep(
        "optane",
        _doubling(64, 4 * KIB),
        lambda size, op=op, bound=bound: {
            "experiment": "align", "op": op, "size": size, "binding": bound, "threads": SPREAD_THREADS[op],
            "fenced": False,
        },
    )
    for op in SPREAD_THREADS
    for dimms, bound in [(1, "own-dimm"), (2, "own-pair"), (6, "own-all")]
}  # fmt: skip

#: One timed write against its lines, to a DIMM so slow that what waits in front of its link shows; the reads that bring
#: the lines into the cache before are slower still, so that the write finds the queue empty.
QUEUED = Sweep({
    lines: case(
        "optane-ni",
        {"experiment": "persist-latency", "op": "ntstore", "size": 64 * lines},
        (f"optane.ddrt.write_transfer={SLOW_TRANSFER_NS}ns", "optane.media.read_latency=5us"),
    )
    for lines in range(1, 9)
})  # fmt: skip


#: The DIMM that others took apart, in `internals`.
TAKEN_APART = "optane-ni-sec23"

#: Regions of a pointer chase: finer above each buffer.
_REGIONS = (*_doubling(64, 8 * KIB), *range(16 * KIB, 64 * KIB, 4 * KIB), *_doubling(64 * KIB, 2 * MIB),
            *range(4 * MIB, 68 * MIB, 4 * MIB))  # fmt: skip


def _chase(region: int, mask: int = 0) -> dict[str, Any]:
    return {"experiment": "chase", "region": region, "mask": mask}


#: Latency of loads that wait for each other, against the region.
CHASE = _sweep(TAKEN_APART, _REGIONS, _chase)

#: Address bits that are kept 0, by name, as in the columns of the measurements.
MASKS = {
    name: sum(1 << bit for bit in bits)
    for name, bits in {
        "none": (), "12": (12,), "13": (13,), "14": (14,), "19": (19,), "20": (20,), "12-13": (12, 13),
        "12-14": (12, 13, 14),
    }.items()
}  # fmt: skip

#: The same round the size of the table's cache, with address bits kept 0.
CHASE_MASKED = {
    name: _sweep(
        TAKEN_APART,
        (MIB, 2 * MIB, 2304 * KIB, 3 * MIB, *range(4 * MIB, 36 * MIB, 4 * MIB)),
        lambda region, mask=mask: _chase(region, mask),
    )
    for name, mask in MASKS.items()
}

#: Share of lines that a buffer gave up when they are read again, against the lines, by (buffer, order).
REPLACEMENT = {
    (buffer, order): _sweep(
        TAKEN_APART,
        probed,
        lambda lines, buffer=buffer, order=order: {
            "experiment": "replacement", "buffer": buffer, "order": order, "lines": lines, "max_requests": 24_000,
        },
    )
    for buffer, probed in (("xpbuffer", (*range(4, 60, 4), *range(60, 129))), ("ait", range(1, 39)))
    for order in ("same", "reverse", "random")
}  # fmt: skip

#: Writes to one place: of a whole line at once, and of 64 B in turn.
WEAR = {
    256: case(TAKEN_APART, {"experiment": "wear", "op": "ntstore", "size": 256}),
    64: case(TAKEN_APART, {"experiment": "tail", "op": "ntstore", "region": 256}),
}

_GIB = 1024 * MIB

_READER = {
    "name": "reader", "threads": 1, "range": _GIB, "mode": "chain", "sample": 1, "steps": [{"op": "load", "size": 64}],
}  # fmt: skip


def _beside(*steps: dict[str, Any]) -> Case:
    """A reader of random lines, each after the other, and beside it another thread, if it does anything."""
    other = {"name": "other", "threads": 1, "range": _GIB, "mode": "sequential", "steps": list(steps)}
    groups = [_READER, other] if steps else [_READER]
    return case(TAKEN_APART, {"experiment": "workload", "name": "contention", "groups": groups})


#: Latency of a reader, by what another thread does on the DIMM without a pause.
CONTENTION = {
    "nobody": _beside(),
    "a reader": _beside({"op": "load", "size": 4096}),
    "a writer": _beside({"op": "ntstore", "size": 4096}),
}

#: 64 B writes round a hot spot, against its size, by platform.
TAIL = {
    platform: _sweep(
        platform,
        [256 * 4**step for step in range(10)],
        lambda region: {"experiment": "tail", "op": "ntstore", "region": region},
    )
    for platform in ("optane", "dram")
}


def internals_cases() -> list[Case]:
    """The cases that show what is inside of a DIMM."""
    sweeps = [CHASE, *CHASE_MASKED.values(), *REPLACEMENT.values()]
    return [*WEAR.values(), *CONTENTION.values(), *chain.from_iterable(sweep.cases.values() for sweep in sweeps)]


def all_cases() -> list[Case]:
    """Every case of a reproduction, once, in a fixed order."""
    sweeps = [
        *THREADS.values(), *SIZES.values(), XPBUFFER, *PERSIST_BANDWIDTH.values(), *PERSIST_LATENCY.values(),
        *SFENCE.values(), *SPREAD.values(), QUEUED, *TAIL.values(),
    ]  # fmt: skip
    single = [
        *LATENCY.values(),
        *PLATEAU.values(),
        *EWR_GRID.values(),
        *CACHED_STORES.values(),
        *internals_cases(),
        *loads.cases(),
    ]
    return list(dict.fromkeys(chain(single, *(sweep.cases.values() for sweep in sweeps))))
