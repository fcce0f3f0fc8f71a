"""Rules about DIMMs, controllers and sockets: who meets whom where."""

from __future__ import annotations

from collections.abc import Iterator

from xpline.advice.rule import Candidate, Rule, Trial, size
from xpline.platform import Platform
from xpline.run.outcome import Run

#: Threads that write to one DIMM at a time beyond which it gets worse: FAST'20, sections 3.4 and 5.3, four at the most.
MOST_WRITERS = 4

#: Traffic that is worth a look.
LEAST_BYTES = 1 << 20

#: The busiest DIMM over the mean from which on DIMMs are uneven.
UNEVEN = 1.5

#: Of a line's writes, those to one quarter KiB of their 4 KiB page, from which on they are a hot spot; and the
#: XPLines that
#: they must go to.
HOT_SHARE, HOT_LINES = 0.5, 256

#: Of the traffic to memory, reads and writes each, from which on it is mixed.
MIXED = 0.2


def crowded_dimm(run: Run) -> Iterator[Candidate]:
    """Many threads write to one DIMM at once."""
    dimms = run.main.data["dimms"]
    slices = sum(dimm["slices"] for dimm in dimms)
    if not slices or run.main.counters["imc_written_bytes"] < LEAST_BYTES:
        return
    mean = sum(dimm["writers"] for dimm in dimms) / slices
    cores = run.main.data["cores"]
    fewer = max(1, int(cores * MOST_WRITERS / mean))
    if mean <= MOST_WRITERS or fewer >= cores:
        return
    yield Candidate(
        sorted(run.lines, key=lambda line: -line.stored_bytes)[:1],
        f"{mean:.1f} threads wrote to the same DIMM within the same 4 µs, on average; {cores} cores were busy in all",
        f"let fewer threads write at a time ({fewer} here), or give each thread DIMMs of its own by laying its "
        "data out in units "
        "of the interleaving size",
        [Trial(cores=fewer)],
        run.main.counters["media_written_bytes"],
        run.main.memory_ns,
    )


def uneven_dimms(run: Run) -> Iterator[Candidate]:
    """One DIMM has most of the traffic."""
    busiest, mean = _balance(run)
    if busiest < LEAST_BYTES or busiest < UNEVEN * mean:
        return
    lines = sorted(run.lines, key=lambda line: -(line.stored_bytes + line.facts["load_bytes"]))
    yield Candidate(
        lines[:1],
        f"the busiest of {len(run.main.data['dimms'])} DIMMs had {size(busiest)} of traffic, "
        f"{busiest / mean:.1f} times the mean",
        "place what is used at the same time on other DIMMs: avoid strides that are a multiple of the stripe (24 "
        "KiB on six DIMMs), "
        "stagger records by 4 KiB",
        [Trial({"kind": "spread-dimms"})],
        run.main.media_bytes,
        run.main.memory_ns,
    )


def aligned_hot_spot(run: Run) -> Iterator[Candidate]:
    """Writes go to the same place of many 4 KiB pages."""
    busiest, mean = _balance(run)
    if busiest >= UNEVEN * mean:
        return  # the rule about uneven DIMMs has it
    for line in run.lines:
        slots = line.facts["page_slots"]
        hottest = max(slots)
        if not sum(slots) or hottest < HOT_SHARE * sum(slots) or line.facts["lines_touched"] < HOT_LINES:
            continue
        yield Candidate(
            [line],
            f"{hottest / sum(slots):.0%} of {sum(slots):,} writes went to the same 256 B of their 4 KiB page, on "
            f"{line.facts['lines_touched']:,} XPLines: strides of 4 KiB keep few banks of the media busy",
            "stagger what is written: add a multiple of 256 B to its place that differs from page to page",
            [Trial({"kind": "colour-pages"})],
            line.facts["media_written_bytes"],
            line.memory_ns,
        )


def remote_mixed(run: Run) -> Iterator[Candidate]:
    """Memory of the other socket is read and written in turns."""
    local = _local(run)
    if local is None:
        return
    counters = run.main.counters
    # The home of a line notes in memory who has read it: such writes are not the program's.
    read, written = counters["imc_read_bytes"], min(counters["imc_written_bytes"], counters["bytes_stored"])
    if read + written < LEAST_BYTES or min(read, written) < MIXED * (read + written):
        return
    yield Candidate(
        run.lines[:1],
        f"{size(read)} were read from and {size(written)} written to memory of the other socket, by "
        f"{run.main.data['cores']} cores",
        "run the threads on the socket that has the memory, or copy to local memory, change it there and write "
        "it back at once",
        [Trial(platform=local, name="memory of the same socket")],
        run.main.media_bytes,
        run.main.memory_ns,
    )


def _balance(run: Run) -> tuple[float, float]:
    """The traffic of the busiest DIMM, and the mean; nothing where there is but one."""
    traffic = [dimm["imc_read_bytes"] + dimm["imc_written_bytes"] for dimm in run.main.data["dimms"]]
    return (max(traffic), sum(traffic) / len(traffic)) if len(traffic) > 1 else (0.0, 1.0)


def _local(run: Run) -> Platform | None:
    """The same platform with its memory on the socket of the cores, where the run's is not."""
    platform = run.main.platform
    cpu, memory = (platform[key].value for key in ("nodes.cpu", "nodes.memory"))
    return platform.changed({"nodes.memory": cpu}) if cpu != memory else None


RULES = (
    Rule(
        "crowded-dimm",
        "Many threads write to one DIMM",
        "FAST'20, section 5.3",
        "A DIMM's buffer is small and each thread's writes hold up the others': more than four writers at a time "
        "lower bandwidth and "
        "EWR.",
        crowded_dimm,
    ),
    Rule(
        "uneven-dimms",
        "One DIMM has most of the traffic",
        "FAST'20, section 5.3",
        "Interleaving spreads neighbouring 4 KiB over the DIMMs; a stride of a whole stripe meets one DIMM again "
        "and again.",
        uneven_dimms,
    ),
    Rule(
        "aligned-hot-spot",
        "Hot spots at multiples of 4 KiB",
        "FAST'20, section 5.3; strides of the paper's published sweep",
        "Lines 4 KiB apart share few banks of the media, and of DRAM: threads that walk so wait for one another.",
        aligned_hot_spot,
    ),
    Rule(
        "remote-mixed",
        "Reads and writes mixed on remote memory",
        "FAST'20, section 5.4",
        "The link between sockets changes direction badly: mixed traffic of several threads on remote memory "
        "loses far more than either "
        "alone.",
        remote_mixed,
        least_speedup=1.2,
    ),
)
