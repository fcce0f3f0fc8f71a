"""Source lines: what their instructions did and cost, together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

#: Where compilers keep the functions that stand for instructions: whoever uses them is the line.
_INTRINSICS = ("/usr/lib/gcc/", "/usr/lib/llvm", "/usr/include/")

#: Facts that are not sums of numbers.
_LISTS = ("time_ps", "page_slots")


@dataclass
class Caller:
    """A stack of calls that led to a line, and what the line did there."""

    #: From the outermost call in: (function, file, line) of each, inlined functions too.
    frames: tuple[tuple[str | None, str | None, int | None], ...]
    facts: dict[str, Any]

    @property
    def where(self) -> str:
        """The innermost call in code that has source lines; else in code that has names; else the innermost of all.

        >>> Caller((("main", "/src/kv.c", 40), ("put", "/src/kv.c", 12), ("memcpy", None, None)), {}).where
        'put (kv.c:12)'
        """
        known = [frame for frame in self.frames if frame[1] and frame[2]]
        named = [frame for frame in self.frames if not (frame[0] or "").partition("+0x")[1]]
        return _short(*(known or named or self.frames)[-1])

    @property
    def memory_ns(self) -> float:
        """Core time of the line, when called from here, that is not computing."""
        return sum(self.facts["time_ps"][1:]) / 1000

    @property
    def time_ns(self) -> float:
        """Core time of the line, when called from here."""
        return sum(self.facts["time_ps"]) / 1000


@dataclass
class Line:
    """A source line, or what is known of it: a function, or an address in a module.

    ``facts`` are the sums over its instructions, in bytes, counts and ps; their names are those of ``run.json``.
    """

    function: str | None
    file: str | None
    line: int | None
    module: str | None
    offset: int
    call: str | None
    #: Functions that the line was inlined into, from the inside out: (function, file, line).
    inlined: tuple[tuple[str | None, str | None, int | None], ...]
    #: The tracked file that a system call is about.
    target: str | None = None
    sites: list[int] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    #: The call sites that it was reached by, those with the most time in memory first; none where callers were not
    #: followed.
    callers: list[Caller] = field(default_factory=list)

    @property
    def where(self) -> str:
        """The place, as people write it.

        >>> Line("put", "/src/kv.c", 12, "/bin/kv", 0x1136, None, ()).where
        'put (kv.c:12)'
        >>> Line("copy", "/src/copy.h", 3, "/bin/kv", 0x1136, None, (("put", "/src/kv.c", 12),)).where
        'copy (copy.h:3) in put (kv.c:12)'
        >>> Line(None, None, None, "/usr/lib/libc.so.6", 0x9f, "write", (), "/pmem/log").where
        'write() of log from libc.so.6+0x9f'
        """
        place = self._place()
        target = f" of {PurePath(self.target).name}" if self.target else ""
        return f"{self.call}(){target} from {place}" if self.call else place

    def _place(self) -> str:
        module = PurePath(self.module).name if self.module else None
        if self.file and self.line:
            frames = [(self.function, self.file, self.line), *self.inlined[:1]]
            return " in ".join(_short(*frame) for frame in frames)
        if not module and not self.offset:
            return "after its last access"
        if self.function:
            return f"{self.function} ({module})" if module else self.function
        return f"{module}+{self.offset:#x}" if module else f"code at {self.offset:#x}"

    @property
    def time_ns(self) -> float:
        """Core time of the line."""
        return sum(self.facts["time_ps"]) / 1000

    @property
    def memory_ns(self) -> float:
        """Core time of the line that is not computing."""
        return sum(self.facts["time_ps"][1:]) / 1000

    @property
    def stored_bytes(self) -> int:
        """Bytes that the line stored, through the caches and past them."""
        return self.facts["store_bytes"] + self.facts["ntstore_bytes"]

    @property
    def source(self) -> tuple[str, int] | None:
        """Its source line, or that of the call that led to it in most of its time where it has none of its own.

        >>> called = [Caller((("put", "/src/kv.c", 12), ("memcpy", None, None)), {})]
        >>> Line("memmove", None, None, "/usr/lib/libc.so.6", 0x9f, None, (), callers=called).source
        ('/src/kv.c', 12)
        """
        own = ((self.function, self.file, self.line),)
        stacks = [own, *(reversed(caller.frames) for caller in self.callers)]
        places = ((file, number) for stack in stacks for _, file, number in stack if file and number)
        return next(places, None)

    def called_from(self, least: float = 0.05) -> list[tuple[str, float]]:
        """The places that it was called from, and the share of each in its time in memory, down to the least share; in
        the bytes that it stored where it took no time."""
        timed = self.memory_ns > 0
        whole = self.memory_ns if timed else self.stored_bytes
        parts: dict[str, float] = {}
        for caller in self.callers:
            part = caller.memory_ns if timed else caller.facts["store_bytes"] + caller.facts["ntstore_bytes"]
            parts[caller.where] = parts.get(caller.where, 0.0) + part
        shares = [(where, part / whole) for where, part in parts.items() if part > 0]
        return sorted((one for one in shares if one[1] >= least), key=lambda one: -one[1])

    @property
    def stack(self) -> list[str]:
        """Module, then functions from the outside in, then the line: a stack for flame graphs."""
        names = [PurePath(self.module).name] if self.module else []
        names += [function for function, _, _ in reversed(self.inlined) if function]
        if self.function:
            names.append(self.function)
        last = f"{PurePath(self.file).name}:{self.line}" if self.file and self.line else f"{self.offset:#x}"
        return [*names, *([f"{self.call}()"] if self.call else []), last]


def _short(function: str | None, file: str | None, line: int | None) -> str:
    place = f"{PurePath(file).name}:{line}" if file and line else None
    if function and place:
        return f"{function} ({place})"
    return function or place or "?"


def lines_of(
    sites: Sequence[Mapping[str, Any]], facts: Sequence[Mapping[str, Any]], calls: Sequence[Mapping[str, Any]] = ()
) -> list[Line]:
    """Group sites by source line; those with the most time in memory first, then those with the most bytes to the
    media. ``calls`` are what the stacks of sites are made of."""
    by_line: dict[int, dict[int, Caller]] = {}
    lines: dict[tuple[Any, ...], Line] = {}
    for number, (site, own) in enumerate(zip(sites, facts, strict=False)):
        line = _line(site)
        key = (line.module, line.function, line.file, line.line, line.call, line.target, line.inlined)
        if not (line.function or line.file):
            key = (*key, line.offset)
        line = lines.setdefault(key, line)
        line.sites.append(number)
        _add(line.facts, own)
        if stack := site.get("stack", 0):
            callers = by_line.setdefault(id(line), {})
            caller = callers.setdefault(stack, Caller(_frames(calls, stack), {}))
            _add(caller.facts, own)
    for line in lines.values():
        line.callers = sorted(by_line.get(id(line), {}).values(), key=lambda caller: -caller.memory_ns)
    active = (line for line in lines.values() if line.time_ns or line.facts["media_written_bytes"])
    return sorted(active, key=lambda line: (-line.memory_ns, -line.facts["media_written_bytes"], line.sites))


def _frames(calls: Sequence[Mapping[str, Any]], stack: int) -> tuple[tuple[str | None, str | None, int | None], ...]:
    """The functions on a stack, from the outside in."""
    frames: list[tuple[str | None, str | None, int | None]] = []
    while stack:
        call = calls[stack - 1]
        own = [(frame["function"], frame["file"], frame["line"]) for frame in call["frames"]]
        module = PurePath(call["module"]).name if call["module"] else "code"
        frames += own or [(f"{module}+{call['offset']:#x}", None, None)]
        stack = call["stack"]
    return tuple(reversed(frames))


def _line(site: Mapping[str, Any]) -> Line:
    frames = [(frame["function"], frame["file"], frame["line"]) for frame in site["frames"]]
    while len(frames) > 1 and (frames[0][1] or "").startswith(_INTRINSICS):
        frames.pop(0)
    function, file, number = frames[0] if frames else (None, None, None)
    return Line(
        function, file, number, site["module"], site["offset"], site["call"], tuple(frames[1:]), site.get("target")
    )


def _add(total: dict[str, Any], own: Mapping[str, Any]) -> None:
    for name, value in own.items():
        if name in _LISTS:
            total[name] = [one + other for one, other in zip(total.get(name, [0] * len(value)), value, strict=True)]
        elif isinstance(value, list):
            total[name] = total.get(name, []) + value
        elif name == "lowest":
            total[name] = min(value, total.get(name, value)) if own["highest"] else total.get(name, value)
        elif name == "highest":
            total[name] = max(value, total.get(name, 0))
        else:
            total[name] = total.get(name, 0) + value
