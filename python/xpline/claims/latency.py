"""Claims about idle latency."""

from __future__ import annotations

from collections.abc import Callable

from xpline.claims.rules import NUMBER_TOLERANCE, number, trend
from xpline.sweeps import LATENCY, Results


def _latency(platform: str, op: str, pattern: str = "sequential") -> Callable[[Results], float]:
    """Mean latency in ns."""
    return lambda results: results.value(LATENCY[platform, op, pattern], "latency_mean_ns")


def _gap(platform: str) -> Callable[[Results], float]:
    """Random over sequential read latency."""
    return lambda results: _latency(platform, "load", "random")(results) / _latency(platform, "load")(results)


def _idle_range(results: Results) -> tuple[bool, str]:
    """Whether sequential and random loads are within 15 % of 180 ns and 340 ns."""
    values = [_latency("optane", "load", pattern)(results) for pattern in ("sequential", "random")]
    near = [abs(value / end - 1) <= NUMBER_TOLERANCE for value, end in zip(values, (180, 340), strict=True)]
    return all(near), "{:.0f} to {:.0f} ns".format(*values)


COVERED = {
    "lat-read-seq": number(_latency("optane", "load", "sequential")),
    "lat-read-rand": number(_latency("optane", "load", "random")),
    "lat-read-seq-dram": number(_latency("dram", "load", "sequential")),
    "lat-read-rand-dram": number(_latency("dram", "load", "random")),
    "lat-ntstore": number(_latency("optane", "ntstore")),
    "lat-clwb": number(_latency("optane", "store+clwb")),
    "lat-ntstore-dram": number(_latency("dram", "ntstore")),
    "lat-clwb-dram": number(_latency("dram", "store+clwb")),
    "lat-gap": number(_gap("optane")),
    "lat-gap-dram": number(_gap("dram")),
    "hc-idle": trend(_idle_range),
    "hc-idle-dram": number(_latency("dram", "load", "sequential")),
    "sa-read-rand": number(_latency("optane", "load", "random")),
    "sa-read-seq": number(_latency("optane", "load", "sequential")),
    "sa-clwb": number(_latency("optane", "store+clwb")),
}
