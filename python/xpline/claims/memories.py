"""Claims about memories that are not Optane alone: emulators, Memory Mode; and about power."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from xpline.claims.rules import Judge, given, number, trend
from xpline.loads import (
    EMULATED_LOADS,
    EMULATED_WRITES,
    FOOTPRINT_THREADS,
    FOOTPRINTS,
    IDLE,
    NEAR_LOADED,
    POWER,
)
from xpline.sweeps import Results

#: How near a hit must be to DRAM, and a miss to DRAM and Optane together.
_HIT, _MISS = 0.03, 0.10


def _hits_and_misses(results: Results) -> tuple[bool, str]:
    """Whether a hit is as quick as DRAM, and a miss as slow as DRAM and Optane together, in sequence and at random."""
    near, texts = True, []
    for pattern in ("sequential", "random"):
        ns = {name: results.value(IDLE[name, pattern], "latency_mean_ns") for name in ("dram", "optane", "hit", "miss")}
        both = ns["dram"] + ns["optane"]
        near &= abs(ns["hit"] / ns["dram"] - 1) <= _HIT and abs(ns["miss"] / both - 1) <= _MISS
        texts.append(f"{pattern}: hit {ns['hit']:.0f} of {ns['dram']:.0f} ns, miss {ns['miss']:.0f} of {both:.0f} ns")
    return near, "; ".join(texts)


def miss_percents(results: Results, mix: str, percent: int) -> tuple[float, float]:
    """The percentage of misses of a footprint with contiguous pages, and with random ones, at full load."""
    cases = [NEAR_LOADED[pages, mix, percent, 0] for pages in ("contiguous", "random")]
    low, high = (100 * results.value(case, "near_miss_ratio") for case in cases)
    return low, high


def _bracketed(percent: int) -> Judge:
    def judge(results: Results) -> tuple[bool, str]:
        spans = [miss_percents(results, mix, percent) for mix, wanted in FOOTPRINTS if wanted == percent]
        inside = all(low <= percent <= high for low, high in spans)
        return inside, "; ".join(f"{low:.0f} to {high:.0f} %" for low, high in spans)

    return trend(judge, f"contiguous to random pages, {FOOTPRINT_THREADS} threads; reads; 2:1")


def _power(results: Results) -> tuple[bool, str]:
    """Whether the write rate rises with each budget from 12 W to 18 W."""
    writes = [results.value(case, "bandwidth") for case in POWER.values()]
    rising = all(more > less for less, more in pairwise(writes))
    return rising, ", ".join(f"{value:.1f} GiB/s at {watts} W" for watts, value in zip(POWER, writes, strict=True))


def _added(results: Results) -> float:
    emulated, plain = (results.value(EMULATED_LOADS[name], "latency_mean_ns") for name in ("pmep", "dram"))
    return emulated - plain


def _over_dram(results: Results) -> float:
    emulated, plain = (results.value(EMULATED_WRITES[name], "bandwidth") for name in ("pmep", "dram"))
    return emulated / plain


def _line() -> Callable[[Results], str]:
    return lambda results: results.parameter("memory-mode", "near.line")


COVERED = {
    "emul-pmep-load": number(_added, "against the same machine without the emulator"),
    "emul-pmep-write": number(_over_dram, "against the same machine without the emulator"),
    "memmode-line": given(_line(), "set in the platform file; 4KiB can be set"),
    "hc-mm-hit": trend(_hits_and_misses),
    "hc-mm-miss-0": _bracketed(0),
    "hc-mm-miss-10": _bracketed(10),
    "hc-mm-miss-25": _bracketed(25),
    "hc-mm-miss-40": _bracketed(40),
    "hc-power": trend(_power, "ntstores of four threads"),
}
