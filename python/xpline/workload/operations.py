"""Custom operations: chains such as ``rp_512,rp_512,wp_64_cache_320,wp_64_cache_-64``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

#: How a write is made persistent, and the ops that do it to each 64 B.
PERSIST = {
    "cache": "store+clwb",
    "cacheinv": "store+clflushopt",
    "nocache": "ntstore",
    "none": "store",
}

_MEMORIES = {"p": "persistent", "d": "volatile"}
_READ = re.compile(r"r([dp]?)_([0-9]{1,12})")
_WRITE = re.compile(r"w([dp]?)_([0-9]{1,12})_([a-z]+)(?:_([+-]?[0-9]{1,12}))?")


@dataclass(frozen=True)
class Operation:
    """One read or write of a chain."""

    op: str
    memory: str
    size: int
    offset: int = 0

    @property
    def is_read(self) -> bool:
        return self.op == "load"

    def step(self) -> dict[str, Any]:
        """As a point has it."""
        return {"op": self.op, "memory": self.memory, "size": self.size, "offset": self.offset}


def parse(text: str) -> tuple[Operation, ...]:
    """The operations of a chain; ``ValueError`` says what is wrong with them.

    >>> for operation in parse("rd_1024, r_512, w_64_nocache_-64"):
    ...     print(operation)
    Operation(op='load', memory='volatile', size=1024, offset=0)
    Operation(op='load', memory='persistent', size=512, offset=0)
    Operation(op='ntstore', memory='persistent', size=64, offset=-64)
    >>> parse("w_64_cache")
    Traceback (most recent call last):
    ...
    ValueError: w_64_cache writes before anything is read: begin with a read, whose place the write depends on
    """
    operations: list[Operation] = []
    for word in text.split(","):
        word = word.strip()
        operation = _operation(word)
        if not operation.is_read:
            if not operations:
                raise ValueError(
                    f"{word} writes before anything is read: begin with a read, whose place the write depends on"
                )
            if operation.memory != operations[-1].memory:
                raise ValueError(f"{word} writes to {operation.memory} memory, but the place before it is in the other")
        operations.append(operation)
    return tuple(operations)


def _operation(word: str) -> Operation:
    if match := _READ.fullmatch(word):
        operation = Operation("load", _MEMORIES[match[1] or "p"], int(match[2]))
    elif match := _WRITE.fullmatch(word):
        if match[3] not in PERSIST:
            raise ValueError(f"{word}: {match[3]} is no persist instruction; use {', '.join(PERSIST)}")
        operation = Operation(PERSIST[match[3]], _MEMORIES[match[1] or "p"], int(match[2]), int(match[4] or 0))
    else:
        raise ValueError(
            f"{word or 'nothing'} is no operation; expected r[d|p]_SIZE, or w[d|p]_SIZE_PERSIST[_OFFSET], "
            "such as rp_256 or w_64_nocache"
        )
    if operation.size == 0 or operation.size % 64:
        raise ValueError(f"{word}: {operation.size} B is not a multiple of 64 B, a cache line")
    if operation.offset % 64:
        raise ValueError(f"{word}: an offset of {operation.offset} B is not a multiple of 64 B, a cache line")
    return operation
