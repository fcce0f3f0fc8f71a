"""Rules about stores: how large, where, and by which instruction."""

from __future__ import annotations

from collections.abc import Iterator

from xpline.advice.rule import Candidate, Rule, Trial, size
from xpline.run.lines import Line
from xpline.run.outcome import Run

#: Media traffic that a line must cause to be looked at: in bytes, and of all writes to the media.
LEAST_BYTES, LEAST_SHARE = 64 << 10, 0.05

#: Flushed bytes in long runs that are worth another instruction.
LEAST_RUN_BYTES = 64 << 10

#: Runs of ntstores that are worth a look.
LEAST_RUNS = 100

#: Bytes that the caches must have given up by themselves.
LEAST_EVICTED = 1 << 20

#: XPLines that a DIMM's buffer holds: FAST'20, section 5.1.
BUFFERED = 64


def small_random_stores(run: Run) -> Iterator[Candidate]:
    """XPLines are written with pieces missing, though somebody flushed them or wrote past the caches."""
    written = run.main.counters["media_written_bytes"]
    line_bytes = run.main.counters["media_line_bytes"]
    if line_bytes <= 64:
        return
    for line in run.lines:
        facts = line.facts
        own = facts["media_written_bytes"]
        if own < LEAST_BYTES or own < LEAST_SHARE * written:
            continue
        useful = 64 * facts["pieces_written"]
        if (
            facts["partial_written_bytes"] < 0.5 * own
            or facts["evicted_written_bytes"] > 0.5 * own
            or useful > 0.6 * own
        ):
            continue
        region = facts["highest"] - facts["lowest"]
        stores = facts["stores"] + facts["ntstores"]
        yield Candidate(
            [line],
            f"{size(line.stored_bytes)} in stores of {line.stored_bytes / max(stores, 1):.0f} B, spread over "
            f"{size(region)}: "
            f"the media wrote {size(own)} for them, {own / max(useful, 1):.1f} B for each B of the lines that "
            "reached it",
            f"gather what is written together into {line_bytes} B that are aligned to {line_bytes} B (append to "
            "a log, or keep "
            f"the fields of a record that change together side by side), or keep what is written again within "
            f"{BUFFERED} XPLines ({size(BUFFERED * line_bytes)}) a DIMM",
            [Trial({"kind": "pack", "stores": sites(_beside(run, line))})],
            own,
            line.memory_ns,
        )


def _beside(run: Run, line: Line) -> list[Line]:
    """The lines of the same function that write to the same region, as those that fill one record do."""

    def meets(other: Line) -> bool:
        shared = min(line.facts["highest"], other.facts["highest"]) - max(line.facts["lowest"], other.facts["lowest"])
        return shared > 0 and other.stored_bytes > 0

    here = (line.module, line.stack[:-1])
    return [other for other in run.lines if (other.module, other.stack[:-1]) == here and meets(other)]


def large_cached_writes(run: Run) -> Iterator[Candidate]:
    """Ranges of 512 B and more are stored through the caches and then flushed."""
    for line in run.lines:
        facts = line.facts
        in_runs = 64 * facts["long_run_lines"]
        if line.call or in_runs < LEAST_RUN_BYTES or facts["late_lines"] > 0.5 * facts["flushes"]:
            continue
        if facts["long_run_lines"] < 0.5 * facts["flushes"]:
            continue
        writers = writers_of(run, line)
        runs = max(facts["flush_runs"], 1)
        yield Candidate(
            [*writers, line],
            f"{size(in_runs)} were stored through the caches and flushed here line after line, about "
            f"{size(64 * facts['flushes'] / runs)} at a time: each line was read from memory before it was "
            "written over",
            "write ranges of 512 B and more past the caches: movnti or movntdq and a fence, or pmem_memcpy with "
            "PMEM_F_MEM_NONTEMPORAL; then no flush is needed",
            [Trial({"kind": "nt-stores", "stores": sites(writers), "flushes": line.sites})],
            facts["media_read_bytes"] + sum(writer.facts["media_written_bytes"] for writer in writers),
            line.memory_ns + sum(writer.memory_ns for writer in writers),
        )


def small_ntstores(run: Run) -> Iterator[Candidate]:
    """Less than 256 B are written past the caches at a time."""
    for line in run.lines:
        facts = line.facts
        if line.call or facts["short_nt_runs"] < LEAST_RUNS or facts["short_nt_runs"] < 0.5 * facts["nt_runs"]:
            continue
        yield Candidate(
            [line],
            f"{facts['short_nt_runs']:,} of {facts['nt_runs']:,} writes past the caches were shorter than 256 B, "
            f"{facts['ntstore_bytes'] / facts['nt_runs']:.0f} B on average, and a fence waits for each",
            "write less than 256 B with plain stores and one clwb a line, above all where the line was read just "
            "before",
            [Trial({"kind": "cached-stores", "stores": line.sites})],
            facts["media_written_bytes"],
            line.memory_ns,
        )


def cache_eviction(run: Run) -> Iterator[Candidate]:
    """Stores are left to the caches, which give lines up in no order."""
    for line in run.lines:
        facts = line.facts
        own, evicted = facts["media_written_bytes"], facts["evicted_written_bytes"]
        if evicted < LEAST_EVICTED or evicted < 0.5 * own or flushed_late(run, line):
            continue
        yield Candidate(
            [line],
            f"{size(line.stored_bytes)} were stored and not flushed; the caches gave the lines up by themselves, "
            "in no order, "
            f"and the media wrote {size(own)} for them",
            "flush each line (clwb) once it is written, or write past the caches: lines of an XPLine then leave "
            "together",
            sooner(line.sites, []),
            own,
            line.memory_ns,
        )


def sooner(stores: list[int], flushes: list[int]) -> list[Trial]:
    """What stands in for stores that reach memory when the caches please: a flush of each line, or ntstores."""
    changed = {"stores": stores, "flushes": flushes}
    return [
        Trial({"kind": "flush-soon", **changed}, name="a clwb after each line"),
        Trial({"kind": "nt-stores", **changed}, name="writing past the caches"),
    ]


def flushed_late(run: Run, line: Line) -> bool:
    """Whether most of a line's stores are flushed in the end: another rule's business."""
    mine = set(line.sites)
    late = (facts for facts in run.main.data["sites"] if facts["late_lines"])
    return any(site in mine for facts in late for site, _ in facts["writers"])


def writers_of(run: Run, line: Line) -> list[Line]:
    """The lines whose stores a line flushed, the one with most first."""
    counts: dict[int, int] = {}
    for site, lines in line.facts["writers"]:
        counts[site] = counts.get(site, 0) + lines
    found = [(sum(counts.get(site, 0) for site in other.sites), other) for other in run.lines]
    return [other for count, other in sorted(found, key=lambda pair: -pair[0]) if count]


def sites(lines: list[Line]) -> list[int]:
    """Every site of some lines."""
    return [site for line in lines for site in line.sites]


RULES = (
    Rule(
        "small-random-stores",
        "Small stores at random places",
        "FAST'20, section 5.1",
        "The media write 256 B at a time. A line that leaves the DIMM's buffer with pieces missing is read and "
        "written whole.",
        small_random_stores,
    ),
    Rule(
        "large-cached-writes",
        "Large writes through the caches",
        "FAST'20, section 5.2",
        "A plain store reads its line from memory first, and a flush evicts it. An ntstore does neither, and "
        "wins from 256 B "
        "(bandwidth) to 512 B (latency) on.",
        large_cached_writes,
    ),
    Rule(
        "small-ntstores",
        "Small writes past the caches",
        "FAST'20, section 5.2",
        "An ntstore takes longer to reach the memory controller than a flush of a line that is cached: below the "
        "crossover a store "
        "and clwb are quicker.",
        small_ntstores,
    ),
    Rule(
        "cache-eviction",
        "Stores left to the caches",
        "FAST'20, section 5.2",
        "Caches give lines up in no order, so that lines of one XPLine reach the DIMM far apart: EWR falls from "
        "0.98 to 0.26 in the "
        "paper's experiment.",
        cache_eviction,
    ),
)
