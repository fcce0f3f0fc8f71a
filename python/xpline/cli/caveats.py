"""What a result does not mean, said on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from xpline.platform import Platform

#: Experiments that make what they write persistent, whatever their other parameters.
_PERSISTENT = {"flush", "persist-latency", "wear", "tail"}


def persists(point: Mapping[str, Any]) -> bool:
    """Whether a point writes in order to keep what it writes.

    >>> persists({"experiment": "random", "op": "store+clwb"}), persists({"experiment": "random", "op": "load"})
    (True, False)
    """
    return point["experiment"] in _PERSISTENT or point.get("op") == "store+clwb"


def warn_budget(platforms: Iterable[object]) -> None:
    """Say so if a power budget is less than the firmware of an Optane DIMM takes: it stays at its default then."""
    for one in platforms:
        if not isinstance(one, Platform):
            continue
        power = {entry.key.removeprefix("optane.power."): entry.value.strip('"') for entry in one.show()}
        if "budget" not in power or power["budget"] == power["reference"]:
            continue
        from xpline.fit.quantity import convert, parse  # only here, for the sake of the start of all other runs

        budget, least = (convert(*parsed, "W") for key in ("budget", "least") if (parsed := parse(power[key])))
        if budget is not None and least is not None and budget < least:
            print(
                f"{one.name}: optane.power.budget = {power['budget']}: DIMMs take {power['least']} or more, "
                f"and stay at {power['reference']}",
                file=sys.stderr,
            )


def warn_volatile(platforms: Iterable[object], is_persistent: bool) -> None:
    """Say so if something meant to persist runs on Memory Mode, which forgets all with the power."""
    named = {one.name for one in platforms if isinstance(one, Platform) and one.is_memory_mode}
    if named and is_persistent:
        print(
            f"{', '.join(sorted(named))} is volatile: in Memory Mode nothing survives a loss of power, "
            "whatever is flushed and fenced; for persistent memory use App Direct (optane)",
            file=sys.stderr,
        )
