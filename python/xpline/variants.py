"""Platforms of the sweep that are another one but for a few values: a file in place of that one holds for them, too.

>>> changed("optane-remote")
{'nodes.memory': '1'}
>>> base("optane-2018"), base("dram")
('optane', None)
"""

from __future__ import annotations

from functools import cache

from xpline.platform import Platform

#: What each is a variant of. Its own file says what differs.
_BASES = {"optane-ni": "optane", "optane-remote": "optane", "optane-2018": "optane", "dram-remote": "dram"}


def base(name: str) -> str | None:
    """The platform that this one is a variant of, if it is one."""
    return _BASES.get(name)


@cache
def _own(name: str) -> tuple[tuple[str, str], ...]:
    own = (entry for entry in Platform(name).show() if entry.origin.startswith(f"platforms/{name}.toml:"))
    return tuple((entry.key, entry.value.strip('"')) for entry in own if entry.key not in ("name", "description"))


def changed(name: str) -> dict[str, str]:
    """The values in which a variant differs from its base, by key."""
    return dict(_own(name))
