"""Named changes of a platform: several values at once, as data."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from typing import Any

from xpline.platform import Platform


@dataclass(frozen=True)
class Change:
    """Values put in place of a platform's own, by dotted key. A value that is itself a key stands for the value of
    that key.

    >>> slow = Change("slow rewrites", "", (("optane.ddrt.write_transfer", "optane.ddrt.rewrite_transfer"),))
    >>> slow.on(Platform("optane", set={"optane.ddrt.rewrite_transfer": "30ns"}))
    {'optane.ddrt.write_transfer': '30ns'}
    >>> slow.on(Platform("dram"))  # has no DDR-T link: nothing changes
    {}
    """

    name: str
    about: str
    values: tuple[tuple[str, object], ...]

    def on(self, platform: Platform) -> dict[str, object]:
        """The overrides for one platform: of the keys that it has."""
        own = {entry.key: entry.value.strip('"') for entry in platform.show()}
        return {key: own.get(str(value), value) for key, value in self.values if key in own}


def flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Keys and values of nested TOML tables, as dotted keys.

    >>> list(flat(tomllib.loads('core.fence = "1ps"')))
    [('core.fence', '1ps')]
    """
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def read(file: Traversable, heading: str) -> list[Change]:
    """The changes of a file: tables ``[[heading]]`` with ``name``, ``about`` and ``set``, the values."""
    return [
        Change(entry["name"], entry["about"], tuple(flat(entry["set"])))
        for entry in tomllib.loads(file.read_text(encoding="utf-8"))[heading]
    ]
