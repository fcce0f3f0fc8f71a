"""Rules about flushes and fences: which, when, and whether at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import PurePath

from xpline.advice.rule import Candidate, Rule, Trial, count, size
from xpline.advice.stores import LEAST_EVICTED, sites, sooner, writers_of
from xpline.run.lines import Line
from xpline.run.outcome import Run

#: Needless flushes or fences that are worth a look: so many, and that share of the line's.
LEAST, LEAST_SHARE = 8, 0.1

#: Of the flushed lines of a source line, those from which on what happens to them is its habit; and lines that it takes
#: to see an exception.
HABIT, LEAST_FLUSHED = 0.9, 40

#: Bytes that must have waited long for their flush.
LEAST_LATE = 1 << 20

#: Code that keeps state of its own in persistent memory which is rebuilt after a restart, and need not be flushed.
#: The C
#: library's locks are used by others.
KEEPS_VOLATILE_STATE = ("libpmemobj.so*", "libpmem.so*", "libpmem2.so*", "libc.so*", "libc-*.so", "libpthread*")


def clflush(run: Run) -> Iterator[Candidate]:
    """clflush is used, which waits for each line."""
    for line in run.lines:
        facts = line.facts
        if facts["clflushes"] >= LEAST and facts["clflushes"] >= LEAST_SHARE * facts["flushes"]:
            yield Candidate(
                [line],
                f"{facts['clflushes']:,} lines were flushed with clflush, each of which waits for the one before",
                "use clwb (or clflushopt), ordered by one sfence after the last of them",
                [Trial({"kind": "clwb", "flushes": line.sites})],
                0,
                line.memory_ns,
            )


def double_flush(run: Run) -> Iterator[Candidate]:
    """A line is flushed again though nobody wrote it meanwhile."""
    yield from _needless(
        run,
        "double_flushes",
        lambda line, number: (
            f"{number:,} of {line.facts['flushes']:,} flushes were of lines flushed before and not written since"
        ),
        "flush each line once after its last store: gather the ranges that are to be persistent and flush them "
        "together",
    )


def clean_flush(run: Run) -> Iterator[Candidate]:
    """A line is flushed that nobody stored to."""
    yield from _needless(
        run,
        "clean_flushes",
        lambda line, number: (
            f"{number:,} of {line.facts['flushes']:,} flushes were of lines that nobody had stored to, or only past "
            "the caches"
        ),
        "flush only what was stored: nothing after ntstores, and not the whole object where a field changed",
    )


def _needless(run: Run, fact: str, evidence: Callable[[Line, int], str], change: str) -> Iterator[Candidate]:
    for line in run.lines:
        number = line.facts[fact]
        if not line.call and number >= LEAST and number >= LEAST_SHARE * line.facts["flushes"]:
            trial = Trial({"kind": "drop-needless-flushes", "flushes": line.sites})
            yield Candidate([line], evidence(line, number), change, [trial], 0, line.memory_ns)


def empty_fence(run: Run) -> Iterator[Candidate]:
    """An sfence has nothing to order."""
    for line in run.lines:
        number = line.facts["empty_fences"]
        if not run.heap and not line.call and number >= LEAST and number >= LEAST_SHARE * line.facts["fences"]:
            yield Candidate(
                [line],
                f"{number:,} of {line.facts['fences']:,} fences came with nothing of tracked memory flushed or "
                "written past the "
                "caches since the fence before",
                "leave the fence out, unless it orders something that was not traced; plain stores are ordered "
                "without it",
                [Trial({"kind": "drop-empty-fences", "fences": line.sites})],
                0,
                line.memory_ns,
            )


def missing_persist(run: Run) -> Iterator[Candidate]:
    """What was stored is in the caches alone at the end, in a file of which other parts were made persistent."""
    if run.heap or run.main.platform["core.eadr"].value == "true":
        return
    persisted = {run.file_of(page) for page in run.main.data["persisted_pages"]}
    for line in run.lines:
        if _keeps_volatile_state(line):
            continue
        left: dict[str | None, int] = {}
        for page, lines in line.facts["unflushed"]:
            if (file := run.file_of(page)) in persisted:
                left[file] = left.get(file, 0) + lines
        if not left or 64 * sum(left.values()) >= LEAST_EVICTED:
            continue  # none, or so much that it is the caches' business
        names = ", ".join(sorted(file or "tracked memory" for file in left))
        flushed = line.facts["pieces_written"] and line.facts["media_written_bytes"]
        also = "" if not flushed else " (other stores from here did reach the media)"
        yield Candidate(
            [line],
            f"stored here and not flushed by the end: {count(sum(left.values()), 'line')} of 64 B in {names}{also}. "
            "A power failure loses what only the caches have",
            "flush the stores (clwb or pmem_flush) and fence before whatever says that they are there; if the "
            "data need not "
            "survive, keep them in DRAM",
            [],
            line.facts["media_written_bytes"],
            line.memory_ns,
        )


def persist_order(run: Run) -> Iterator[Candidate]:
    """What was stored first becomes persistent after what its thread stored later: as a habit, or as an exception."""
    if run.heap or run.main.platform["core.eadr"].value == "true":
        return
    line_of = {site: line for line in run.lines for site in line.sites}
    for line in run.lines:
        flushed, overtaken = line.facts["lines_flushed"], line.facts["overtaken"]
        if not overtaken or _keeps_volatile_state(line):
            continue
        times: dict[str, int] = {}
        once = often = 0
        for site, alone, more in overtaken:
            other = line_of.get(site)
            if other is not None and not _keeps_volatile_state(other):
                times[other.where] = times.get(other.where, 0) + alone + more
                once, often = once + alone, often + more
        clean = flushed - sum(alone + more for _, alone, more in overtaken)
        is_habit = once >= LEAST and once >= HABIT * flushed
        is_exception = once + often > 0 and flushed >= LEAST_FLUSHED and clean >= HABIT * flushed
        if not (is_habit or is_exception):
            continue
        other = max(times, key=lambda where: times[where])
        yield Candidate(
            [line],
            f"{once + often:,} of {count(flushed, 'line')} of 64 B stored here were flushed only after a fence that "
            f"made persistent what {other} stored later"
            + ("" if is_habit else "; the others had been flushed by then")
            + ". After a power failure in between, the later store is there and this one is not",
            "flush these stores and fence before the later store, if that says that they are there; if it does not, "
            "flush both before one fence",
            [],
            line.facts["media_written_bytes"],
            line.memory_ns,
        )


def _keeps_volatile_state(line: Line) -> bool:
    return bool(line.module) and any(fnmatch(PurePath(line.module or "").name, known) for known in KEEPS_VOLATILE_STATE)


def late_flush(run: Run) -> Iterator[Candidate]:
    """A large write is flushed after its end."""
    for line in run.lines:
        facts = line.facts
        if line.call or 64 * facts["late_lines"] < LEAST_LATE or facts["late_lines"] < 0.5 * facts["flushes"]:
            continue
        writers = writers_of(run, line)
        yield Candidate(
            [line, *writers],
            f"{size(64 * facts['late_lines'])} were flushed after more than 8 MiB of other stores: the caches "
            "had begun to give "
            "them up by themselves",
            "write past the caches (movnti, movntdq), or flush during the write: each few hundred bytes, not "
            "after the whole",
            sooner(sites(writers), line.sites),
            sum(writer.facts["media_written_bytes"] for writer in writers),
            line.memory_ns + sum(writer.memory_ns for writer in writers),
        )


RULES = (
    Rule(
        "clflush",
        "clflush where clwb would do",
        "FAST'20, section 2.3; Intel 64 Software Developer's Manual, CLFLUSH and CLWB",
        "Flushes by clflush wait for one another; those by clwb and clflushopt overlap, up to the next fence.",
        clflush,
    ),
    Rule(
        "double-flush",
        "A line is flushed twice",
        "FAST'20, section 5.2",
        "A flush of a clean line sends nothing, and still has to ask every cache.",
        double_flush,
        least_speedup=1.005,
    ),
    Rule(
        "clean-flush",
        "A clean line is flushed",
        "FAST'20, section 5.2",
        "A flush of a clean line sends nothing, and still has to ask every cache. What ntstores wrote needs none.",
        clean_flush,
        least_speedup=1.005,
    ),
    Rule(
        "empty-fence",
        "A fence with nothing to order",
        "FAST'20, sections 2.3 and 5.2",
        "A fence takes tens of nanoseconds even where there is nothing to wait for.",
        empty_fence,
        least_speedup=1.005,
    ),
    Rule(
        "missing-persist",
        "Stored, and never made persistent",
        "FAST'20, section 2.3",
        "Under ADR a store is persistent once its line has reached a memory controller. What is in the caches is lost.",
        missing_persist,
        correctness=True,
    ),
    Rule(
        "persist-order",
        "Made persistent after what was stored later",
        "FAST'20, section 2.3",
        "What says that data are there (a pointer, a count, a flag) must become persistent after them: lines reach a "
        "memory controller in the order of flushes and fences, not of stores.",
        persist_order,
        correctness=True,
    ),
    Rule(
        "late-flush",
        "A large write is flushed after its end",
        "FAST'20, section 5.2",
        "Stores of more than the caches hold are given up in no order before they are flushed; above 8 MiB "
        "bandwidth falls.",
        late_flush,
    ),
)
