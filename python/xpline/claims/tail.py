"""Claims about tail latency: the writes that wear levelling stalls."""

from __future__ import annotations

from itertools import pairwise

from xpline.claims.rules import number, size, trend
from xpline.sweeps import MIB, TAIL, Results

#: "Well before 64 MB": from this size of the hot spot on, no write may be an outlier.
_WIDE = 16 * MIB

#: Shares of so many writes are counts over a number that differs a little from point to point.
_COUNTED = 0.01

_SMALLEST = TAIL["optane"].steps[0]


def _locality(results: Results) -> tuple[bool, str]:
    """Whether a wider hot spot never has more outliers, and a wide one has none."""
    share = results.curve(TAIL["optane"], "stall_share")
    fading = all(wider <= narrower * (1 + _COUNTED) for narrower, wider in pairwise(share.values()))
    last = max((region for region, value in share.items() if value > 0), default=0)
    return fading and 0 < last < _WIDE, f"{share[_SMALLEST]:.2g} at {size(_SMALLEST)}, none above {size(last)}"


def _on_dram(results: Results) -> tuple[bool, str]:
    """Whether no write of any hot spot on DRAM takes over ten times the median."""
    most = max(results.curve(TAIL["dram"], "stall_share").values())
    return most == 0, "none" if most == 0 else f"{most:.2g} of the writes"


COVERED = {
    "tail-rate": number(
        lambda results: results.curve(TAIL["optane"], "stall_share")[_SMALLEST],
        "writes that take over ten times the median, hot spot of 256 B",
    ),
    "tail-max": number(lambda results: results.curve(TAIL["optane"], "latency_max_ns")[_SMALLEST]),
    "tail-locality": trend(_locality),
    "tail-dram": trend(_on_dram),
}
