"""A target on this machine: which memory, and how it is measured."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xpline import _native
from xpline.errors import XplineError
from xpline.values import sizes


class Host:
    """Memory of this machine: ``host``, ``host:node=N``, ``host:file=PATH``, ``host:dax=PATH`` or ``host:block=PATH``.

    ``isa`` is avx512, avx2 or sse2 (the widest there is); ``flush`` clwb, clflushopt or clflush; ``pages``
    transparent, 4KiB, 2MiB or 1GiB. Threads are pinned to ``cpus`` (``"0-3,8"`` or numbers; those of ``cpu_node``;
    all that the process may use) and work in ``span`` bytes each. A point is repeated in windows of ``window`` seconds
    until the 95 % confidence interval of the median is at most ``precision`` of it to each side, or for ``time_limit``
    seconds. ``destroy`` lets a device be overwritten; ``keep`` leaves the file that was created. ``dimms`` and
    ``chunk`` say how a device-DAX target is interleaved.

    >>> Host("host:disk=/tmp/x")
    Traceback (most recent call last):
    ...
    xpline.XplineError: target host:disk=/tmp/x: write host, host:node=N, host:file=PATH, ...
    """

    #: A host has no values to override.
    overrides: tuple[str, ...] = ()

    def __init__(
        self,
        target: str = "host",
        *,
        isa: str | None = None,
        flush: str = "clwb",
        pages: str = "transparent",
        cpus: str | Iterable[int] | None = None,
        cpu_node: int | None = None,
        span: int | str = "2GiB",
        precision: float | str = 0.01,
        time_limit: float = 10.0,
        window: float = 0.002,
        destroy: bool = False,
        keep: bool = False,
        dimms: int = 0,
        chunk: int | str = "4KiB",
    ) -> None:
        options = {
            "isa": isa,
            "flush": _one_of("flush", flush, ("clwb", "clflushopt", "clflush")),
            "pages": _one_of("pages", pages, ("transparent", "4KiB", "2MiB", "1GiB")),
            "cpus": _cpus(cpus),
            "cpu_node": cpu_node,
            "span": _size(span, "span"),
            "precision": share(precision, "precision"),
            "time_limit": time_limit,
            "window": min(window, time_limit),
            "destroy": destroy,
            "keep": keep,
            "dimms": dimms,
            "chunk": _size(chunk, "chunk"),
        }
        if isa is not None:
            _one_of("isa", isa, ("avx512", "avx2", "sse2"))
        self.name = target
        self._native = _native.Host(target, json.dumps(options))

    @property
    def cpus(self) -> int:
        """CPUs that threads can be pinned to."""
        return self._native.cpus

    def check_points(self, points: Sequence[str]) -> None:
        """Raise if a point (a JSON object) cannot be measured here."""
        self._native.check_points(list(points))

    def run_points(self, points: Sequence[str], on_done: Callable[[int, str], object]) -> None:
        """Measure points (JSON objects), one after the other; ``on_done`` takes the index and the row of each."""
        self._native.run_points(list(points), on_done)

    def __repr__(self) -> str:
        return f"<Host {self.name}>"


def is_target(name: object) -> bool:
    """Whether a name stands for memory of this machine.

    >>> is_target("host:node=1"), is_target("optane")
    (True, False)
    """
    return isinstance(name, str) and (name == "host" or name.startswith("host:"))


def share(value: float | str, name: str) -> float:
    """A share, as a number or with a percent sign.

    >>> share("2.5%", "precision")
    0.025
    """
    text = str(value).strip()
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise XplineError(f"{name} = {value}: expected a share, such as 1% or 0.01") from None


def _size(value: int | str, name: str) -> int:
    values = sizes(value, name)
    if len(values) != 1:
        raise XplineError(f"{name} = {value}: expected one size, such as 2GiB")
    return values[0]


def _one_of(name: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise XplineError(f"{name} = {value}: expected one of {', '.join(known)}")
    return value


def _cpus(cpus: str | Iterable[int] | None) -> list[Any]:
    if cpus is None:
        return []
    if not isinstance(cpus, str):
        return list(cpus)
    found: list[int] = []
    for part in cpus.split(","):
        match = re.fullmatch(r"\s*(\d{1,6})(?:-(\d{1,6}))?\s*", part)
        if not match or (match[2] and int(match[2]) < int(match[1])):
            raise XplineError(f"cpus = {cpus}: expected numbers and ranges, such as 0-3,8")
        found += range(int(match[1]), int(match[2] or match[1]) + 1)
    return found
