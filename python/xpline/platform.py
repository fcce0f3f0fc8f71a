"""Platforms: the memory systems that experiments run on."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from typing import NamedTuple

from xpline import _native


class Entry(NamedTuple):
    """One value of a platform, and where it comes from."""

    key: str
    value: str
    source: str | None
    origin: str
    about: str


class Platform:
    """A memory system: a built-in one by name, or one from a TOML file.

    ``set`` overrides single values by their dotted keys; numbers with a unit are text, as in the file.

    >>> platform = Platform("optane-ni", set={"optane.xpbuffer.lines": 128, "optane.power.budget": "12.5W"})
    >>> platform.name
    'optane-ni'
    >>> platform["optane.xpbuffer.lines"].value
    '128'
    >>> Platform("optane-ni", set={"optane.xpbuffer.line": "100B"})
    Traceback (most recent call last):
    ...
    xpline.XplineError: --set: optane.xpbuffer.line = 100B is ...
    """

    def __init__(self, name_or_path: str | PathLike[str], set: Mapping[str, object] | None = None) -> None:
        self._set = dict(set or {})
        self._source = fspath(name_or_path)
        self.overrides = tuple(f"{key}={_text(value)}" for key, value in self._set.items())
        self._native = _native.Platform.load(self._source, self.overrides)

    @property
    def name(self) -> str:
        """The name in tables and figures."""
        return self._native.name

    @property
    def description(self) -> str:
        """What the platform is, in a line."""
        return self._native.description

    @property
    def cores(self) -> int:
        """Cores of the socket: as many threads can run."""
        return self._native.cores

    @property
    def is_memory_mode(self) -> bool:
        """Whether its Optane is behind a cache of DRAM, and so volatile.

        >>> Platform("memory-mode").is_memory_mode, Platform("optane").is_memory_mode
        (True, False)
        """
        return self["memory"].value.strip('"') == "memory-mode"

    def changed(self, set: Mapping[str, object]) -> Platform:
        """The same platform with more overrides, which win over those it has.

        >>> Platform("dram", set={"l3.ways": 11}).changed({"l3.hit": "18ns"}).overrides
        ('l3.ways=11', 'l3.hit=18ns')
        """
        return Platform(self._source, set=self._set | dict(set))

    def show(self) -> list[Entry]:
        """Every value with its source.

        >>> print(next(entry.about for entry in Platform("dram").show() if entry.key == "interleave.dimms"))
        DIMMs that the address space covers
        """
        return [Entry(*entry) for entry in self._native.show()]

    @property
    def estimates(self) -> list[Entry]:
        """The values that no measurement and no datasheet stands behind.

        >>> "link.latency" in [entry.key for entry in Platform("cxl-dram").estimates]
        True
        """
        return [entry for entry in self.show() if (entry.source or "").startswith("estimate")]

    def __getitem__(self, key: str) -> Entry:
        for entry in self.show():
            if entry.key == key:
                return entry
        raise KeyError(key)

    def __repr__(self) -> str:
        overrides = "".join(f", {override}" for override in self.overrides)
        return f"<Platform {self.name}{overrides}>"


def platform_names() -> list[str]:
    """Names of the built-in platforms.

    >>> platform_names()
    ['optane', 'optane-ni', 'dram'...]
    """
    return _native.Platform.names()


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
