"""A job: the keys of a benchmark, what they may be, and what must hold between them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from xpline.errors import XplineError
from xpline.workload.operations import PERSIST, Operation, parse
from xpline.workload.source import Place

_SIZE = re.compile(r"([0-9]{1,15})([KMGkmg]?)")
_FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_MOST_OPERATIONS = 1 << 53


@dataclass(frozen=True)
class Job:
    """What the threads of a benchmark do; a key that is not given has PerMA-Bench's default. Sizes are in bytes."""

    access_size: int = 256
    memory_range: int = 10 << 30
    dram_memory_range: int = 0
    #: Share of the accesses at random that go to DRAM.
    dram_operation_ratio: float = 0.0
    #: Of all threads together; the run may end before, once its mean is known.
    number_operations: int = 10_000_000
    #: Simulated seconds after which the run ends instead.
    run_time: float | None = None
    number_threads: int = 1
    #: Disjoint parts of the ranges; 0 is one a thread.
    number_partitions: int = 1
    operation: str = "read"
    exec_mode: str = "sequential"
    persist_instruction: str = "nocache"
    numa_pattern: str = "near"
    random_distribution: str = "uniform"
    zipf_alpha: float = 0.9
    custom_operations: tuple[Operation, ...] = ()
    #: Every how many operations one is timed; 0 times none.
    latency_sample_frequency: int = 0
    #: The model's pages are there from the start, and no look-up of them takes time.
    prefault_file: bool = True
    dram_huge_pages: bool = True
    #: Bytes that a thread takes at once of a sequential range that it shares.
    min_io_chunk_size: int = 64 << 20
    #: The chain as it was written.
    written: str = field(default="", repr=False)

    @property
    def steps(self) -> tuple[Operation, ...]:
        """What is done in each iteration."""
        if self.exec_mode == "custom":
            return self.custom_operations
        op = "load" if self.operation == "read" else PERSIST[self.persist_instruction]
        return (Operation(op, "persistent", self.access_size),)

    @property
    def persists(self) -> bool:
        """Whether it makes writes to persistent memory persistent."""
        kept = {op for persist, op in PERSIST.items() if persist != "none"}
        return any(operation.op in kept and operation.memory == "persistent" for operation in self.steps)

    def group(self, name: str) -> dict[str, Any]:
        """The job as a group of a point."""
        zipf = self.random_distribution == "zipf"
        return {
            "name": name,
            "threads": self.number_threads,
            "partitions": self.number_partitions,
            "range": self.memory_range,
            "volatile_range": self.dram_memory_range,
            "volatile_share": self.dram_operation_ratio,
            "mode": "chain" if self.exec_mode == "custom" else self.exec_mode,
            "chunk": self.min_io_chunk_size,
            "zipf": self.zipf_alpha if zipf else None,
            "steps": [operation.step() for operation in self.steps],
            "sample": self.latency_sample_frequency,
            "operations": self.number_operations,
            "run_time": self.run_time,
        }

    def settings(self) -> dict[str, Any]:
        """The columns of the table that the job sets."""
        custom = self.exec_mode == "custom"
        return {
            "op": None if custom else self.steps[0].op,
            "pattern": self.exec_mode,
            "size": None if custom else self.access_size,
            "region": self.memory_range or None,
        }

    def config(self) -> dict[str, Any]:
        """Every key with its value, as a file would have it."""
        config = asdict(self) | {"custom_operations": self.written or None}
        del config["written"]
        return {key: value for key, value in config.items() if value is not None}


def _size(text: str) -> int:
    match = _SIZE.fullmatch(text)
    if not match:
        raise ValueError("expected bytes, with K, M or G for 1024, 1024² or 1024³, such as 256, 64K or 10G")
    return int(match[1]) * _FACTORS[match[2].lower()]


def _lines(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        size = _size(text)
        if size < least or size % 64 or size > 1 << 40:
            raise ValueError(f"must be a multiple of 64 B, a cache line, from {least} to 1024G")
        return size

    return read


def _count(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,18}", text) or not least <= int(text) <= most:
            raise ValueError(f"must be a whole number from {least} to {most}")
        return int(text)

    return read


def _number(low: float, high: float, words: str) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not low <= number <= high:
            raise ValueError(f"must be a number {words}")
        return number

    return read


def _word(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"must be {', '.join(words[:-1])} or {words[-1]}")
        return text

    return read


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text.lower() == "true"


#: How the value of each key is read; ``ValueError`` says what it may be.
KEYS: dict[str, Callable[[str], Any]] = {
    "access_size": _lines(64),
    "memory_range": _lines(0),
    "dram_memory_range": _lines(0),
    "dram_operation_ratio": _number(0.0, 1.0, "from 0 to 1"),
    "number_operations": _count(1, _MOST_OPERATIONS),
    "run_time": _number(1e-6, 1e6, "of seconds, from 0.000001 to 1000000"),
    "number_threads": _count(1, 65_535),
    "number_partitions": _count(0, 65_535),
    "operation": _word("read", "write"),
    "exec_mode": _word("sequential", "random", "custom"),
    "persist_instruction": _word(*PERSIST),
    "numa_pattern": _word("near", "far"),
    "random_distribution": _word("uniform", "zipf"),
    "zipf_alpha": _number(1e-6, 10.0, "above 0, at most 10"),
    "custom_operations": parse,
    "latency_sample_frequency": _count(0, _MOST_OPERATIONS),
    "prefault_file": _flag,
    "dram_huge_pages": _flag,
    "min_io_chunk_size": _lines(64),
}
assert set(KEYS) == {entry.name for entry in fields(Job)} - {"written"}


def make(places: Mapping[str, Place], whole: Place) -> Job:
    """The job of these keys; ``whole`` is the benchmark, for what no key is to blame for."""
    values: dict[str, Any] = {}
    for key, place in places.items():
        text = place.text.strip()
        try:
            values[key] = KEYS[key](text)
        except ValueError as error:
            raise place.error(str(error)) from None
    if "custom_operations" in places:
        values["written"] = places["custom_operations"].text.strip()
    job = Job(**values)

    def refuse(key: str, problem: str) -> XplineError:
        return places[key].error(problem) if key in places else whole.error(f"{key} = {values.get(key)}: {problem}")

    _check(job, refuse)
    return job


def _check(job: Job, refuse: Callable[[str, str], XplineError]) -> None:
    custom = job.exec_mode == "custom"
    if custom != bool(job.custom_operations):
        key, other = ("exec_mode", "custom_operations") if custom else ("custom_operations", "exec_mode: custom")
        raise refuse(key, f"needs {other}")
    parts = job.number_partitions or job.number_threads
    if job.number_threads % parts:
        raise refuse("number_partitions", f"must divide number_threads = {job.number_threads}, or be 0")
    if job.random_distribution == "zipf" and job.exec_mode == "sequential":
        raise refuse("random_distribution", "needs exec_mode: random or custom")
    if job.dram_operation_ratio > 0 and (job.exec_mode != "random" or not job.dram_memory_range):
        raise refuse("dram_operation_ratio", "needs exec_mode: random and a dram_memory_range")
    names = {"persistent": "memory_range", "volatile": "dram_memory_range"}
    used = {operation.memory for operation in job.steps} | ({"volatile"} if job.dram_operation_ratio > 0 else set())
    for memory in sorted(used):
        bytes_ = getattr(job, names[memory])
        largest = max(step.size for step in job.steps if not custom or step.memory == memory)
        if bytes_ // parts // 64 * 64 < largest:
            key = "custom_operations" if custom else "access_size"
            raise refuse(
                key, f"{largest} B do not fit: {names[memory]} is {bytes_} B, of which a partition is 1/{parts}"
            )
