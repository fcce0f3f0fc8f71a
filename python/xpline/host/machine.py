"""What this machine is, as a result keeps it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from xpline import _native


@dataclass(frozen=True)
class Machine:
    """A machine, from the ``environment`` of a row.

    >>> machine = Machine.here()
    >>> machine.facts()["CPUs"] != ""
    True
    """

    environment: dict[str, Any]

    @classmethod
    def here(cls) -> Machine:
        """This machine, now."""
        return cls(json.loads(_native.Host.environment()))

    @classmethod
    def of(cls, text: str) -> Machine:
        """The machine of a row, from its ``environment``."""
        return cls(json.loads(text))

    def caches(self) -> dict[str, int]:
        """The data caches by name, in bytes: L1d, L2, L3."""
        found = {}
        for cache in self.environment["caches"]:
            if cache["kind"] != "instruction":
                name = f"L{cache['level']}" + ("d" if cache["kind"] == "data" else "")
                found[name] = cache["bytes"]
        return found

    def facts(self) -> dict[str, str]:
        """What people want to know of it, in words; what the system does not tell says so."""
        found = self.environment
        prefetchers = found["prefetchers"]
        modules = [
            f"{one['slot']}: {one['kind']} {size(one['bytes'])}" + (f" at {one['speed']} MT/s" if one["speed"] else "")
            for one in found["modules"]
        ]
        numa = [
            f"node {one['node']}: CPUs {one['cpus'] or 'none'}, {size(one['memory_bytes'])}, "
            f"distances {' '.join(map(str, one['distances']))}"
            for one in found["numa"]
        ]
        clock = f"{found['tsc_ghz']:.3f} GHz, " + ("invariant" if found["tsc_invariant"] else "not invariant")
        facts = {
            "CPU": found["cpu"],
            "CPUs": found["cpus"],
            "frequency": f"{found['frequency_mhz']:.0f} MHz" if found["frequency_mhz"] else None,
            "governor": found["governor"],
            "prefetchers": prefetchers
            and ", ".join(f"{name} {'on' if on else 'off'}" for name, on in prefetchers.items()),
            "instructions": ", ".join([*found["isa"], *found["flushes"]]),
            "caches": ", ".join(f"{name} {size(held)}" for name, held in self.caches().items()),
            "memory": size(found["memory_bytes"]) if found["memory_bytes"] else None,
            "modules": "; ".join(modules),
            "NUMA": "; ".join(numa),
            "huge pages": found["transparent_huge_pages"],
            "counters": found.get("no_counters") or "cache misses",
            "clock": clock,
            "hypervisor": found["hypervisor"] or "none seen",
            "kernel": found["kernel"],
            "mitigations": "; ".join(f"{name}: {state}" for name, state in found["mitigations"].items()) or "none",
            "load at the start": found["load"],
        }
        return {name: value or "not readable" for name, value in facts.items()}


def size(bytes_held: int) -> str:
    """Bytes for people.

    >>> size(48 << 10), size(3 << 29), size(24684092 << 10)
    ('48 KiB', '1.5 GiB', '23.5 GiB')
    """
    for unit, shift in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if bytes_held >= 1 << shift:
            value = bytes_held / (1 << shift)
            return f"{value:.1f}".removesuffix(".0") + f" {unit}"
    return f"{bytes_held} B"
