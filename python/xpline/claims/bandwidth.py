"""Claims about bandwidth: peaks, thread counts, access sizes, DIMMs.

Published GB/s of the FAST'20 study are MiB/s / 1024 (its figures equal its raw sweep that way), so the model's GiB/s
stand beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from xpline.claims.rules import (
    NUMBER_TOLERANCE,
    Claim,
    Judged,
    given,
    number,
    size,
    steps_between,
    trend,
)
from xpline.sweeps import KIB, OPS, PLATEAU, SIZES, SPREAD, SPREAD_THREADS, THREADS, Results

_GIB = "GiB/s"

#: A peak is where bandwidth first comes within 1 % of its highest value, the repeatability of the measurements.
_PEAK = 0.99


def _peak(platform: str, op: str) -> Callable[[Results], float]:
    """The highest bandwidth over threads and access sizes, in GiB/s."""
    sweeps = (THREADS[platform, op], SIZES[platform, op])
    return lambda results: max(max(results.curve(sweep).values()) for sweep in sweeps)


def _ratio(over: Callable[[Results], float], under: Callable[[Results], float]) -> Callable[[Results], float]:
    return lambda results: over(results) / under(results)


def _peak_threads(results: Results, platform: str, op: str) -> int:
    curve = results.curve(THREADS[platform, op])
    return next(threads for threads, value in curve.items() if value >= _PEAK * max(curve.values()))


def _single_dimm_peaks(results: Results) -> tuple[bool, str]:
    """Whether each operation peaks within a step of 1 to 4 threads and has lost a tenth at 24."""
    peaks = {op: _peak_threads(results, "optane-ni", op) for op in OPS}
    curves = [results.curve(THREADS["optane-ni", op]) for op in OPS]
    tails_off = all(curve[24] < 0.9 * max(curve.values()) for curve in curves)
    steps = THREADS["optane-ni", "load"].steps
    in_range = all(peak <= 4 or steps_between(steps, 4, peak) <= 1 for peak in peaks.values())
    return in_range and tails_off, ", ".join(f"{op} {peak}" for op, peak in peaks.items())


def _clwb_peak(results: Results) -> tuple[bool, str]:
    peak = _peak_threads(results, "optane", "store+clwb")
    return 8 <= peak <= 16, f"{peak} threads"


def _knees(results: Results) -> dict[str, int]:
    """By operation, the first size of random accesses whose doubling adds less than a quarter of bandwidth."""
    knees = {}
    for op in OPS:
        curve = results.curve(SIZES["optane", op])
        knees[op] = next(size for size in curve if curve[2 * size] < 1.25 * curve[size])
    return knees


def _knee(results: Results) -> tuple[bool, str]:
    knees = _knees(results)
    near = all(steps_between([64, 128, 256, 512, 1024], 256, min(knee, 1024)) <= 1 for knee in knees.values())
    return near, ", ".join(f"{op} {size(knee)}" for op, knee in knees.items())


def _dip(claim: Claim, results: Results) -> Judged:
    """Where random accesses from 256 B to 64 KiB are slowest, and how much slower than at the ends."""
    steps = [s for s in SIZES["optane", "load"].steps if 256 <= s <= 64 * KIB]
    places, depths = {}, {}
    for op in OPS:
        curve = {s: results.curve(SIZES["optane", op])[s] for s in steps}
        places[op] = min(curve, key=curve.__getitem__)
        depths[op] = 1 - curve[places[op]] / min(curve[steps[0]], curve[steps[-1]])
    off = max(steps_between(steps, 4096, place) for place in places.values())
    holds = off <= 1 and min(depths.values()) >= 0.05
    model = ", ".join(f"{op} {size(places[op])} (-{depths[op]:.0%})" for op in OPS)
    return Judged(claim, "holds" if holds else "fails", model, f"{off} step{'' if off == 1 else 's'}")


def _stripe_peaks(results: Results) -> tuple[bool, str]:
    """Whether ntstores have a local peak within a step of 24 KiB, and another within a step of 48 KiB."""
    curve = results.curve(SIZES["optane", "ntstore"])
    steps = [s for s in curve if 4 * KIB <= s <= 64 * KIB]
    peaks = [b for (a, b), (_, c) in pairwise(pairwise(steps)) if curve[b] > max(curve[a], curve[c])]
    near = [any(steps_between(steps, want, peak) <= 1 for peak in peaks) for want in (24 * KIB, 48 * KIB)]
    return all(near), "peaks at " + (", ".join(map(size, peaks)) or "no size")


def _eight_over_one(results: Results) -> float:
    curve = results.curve(THREADS["optane-ni", "ntstore"])
    return curve[8] / curve[1]


def _spread(results: Results) -> tuple[bool, str]:
    """Whether bandwidth falls from one DIMM a thread to two to six, for both operations, at an EWR above 0.9."""
    curves = {op: [results.curve(SPREAD[op, dimms])[4 * KIB] for dimms in (1, 2, 6)] for op in SPREAD_THREADS}
    falls = all(after < before for curve in curves.values() for before, after in pairwise(curve))
    ewr = min(results.curve(SPREAD["ntstore", dimms], "ewr")[4 * KIB] for dimms in (1, 2, 6))
    values = "; ".join(f"{op} {', '.join(f'{v:.1f}' for v in curve)}" for op, curve in curves.items())
    return falls and ewr >= 0.9, f"{values} GiB/s; EWR from {ewr:.2f}"


def _six_dimm_writes(claim: Claim, results: Results) -> Judged:
    """The write peak, which four threads must reach to a tenth."""
    judged = number(_peak("optane", "ntstore"), unit=_GIB)(claim, results)
    share = results.curve(THREADS["optane", "ntstore"])[4] / _peak("optane", "ntstore")(results)
    status = judged.status if share >= 0.9 else "fails"
    return Judged(claim, status, judged.model, judged.error, f"four threads reach {share:.0%} of it")


def _4k_and_256(results: Results) -> tuple[bool, str]:
    """Whether random reads of 4 KiB and 256 B on one DIMM are within 15 % of each other."""
    curve = results.curve(SIZES["optane-ni", "load"])
    ratio = curve[4096] / curve[256]
    return abs(ratio - 1) <= NUMBER_TOLERANCE, f"4 KiB over 256 B: {ratio:.2f}"


def _interleaving(results: Results) -> str:
    granularity = results.parameter("optane", "interleave.granularity")
    return f"{granularity} over {results.parameter('optane', 'interleave.dimms')} DIMMs"


COVERED = {
    "bw-ni-read": number(_peak("optane-ni", "load"), unit=_GIB),
    "bw-ni-write": number(_peak("optane-ni", "ntstore"), unit=_GIB),
    "bw-ni-ratio": number(_ratio(_peak("optane-ni", "load"), _peak("optane-ni", "ntstore"))),
    "bw-dram-ratio": number(_ratio(_peak("dram", "load"), _peak("dram", "ntstore"))),
    "bw-ni-peak-threads": trend(_single_dimm_peaks),
    "bw-il-peak-threads-clwb": trend(_clwb_peak),
    "bw-il-read": number(_ratio(_peak("optane", "load"), _peak("optane-ni", "load"))),
    "bw-il-write": number(_ratio(_peak("optane", "ntstore"), _peak("optane-ni", "ntstore"))),
    "bw-small-random": trend(_knee),
    "bw-4k-dip": _dip,
    "bw-24k-peak": trend(_stripe_peaks),
    "bw-8t": number(_eight_over_one),
    "imc-spread": trend(_spread, "4 KiB at random; 1, 2, 6 DIMMs a thread"),
    "interleave": given(_interleaving),
    "hc-4k-vs-256": trend(_4k_and_256, "random reads of four threads on one DIMM"),
    "sa-read-peak": number(_peak("optane", "load"), unit=_GIB),
    "sa-write-peak": _six_dimm_writes,
    "sa-1t-store": number(
        lambda results: results.value(PLATEAU["store+clwb"], "bandwidth"), "model with store+clwb", _GIB
    ),
    "sa-1t-load": number(lambda results: results.value(PLATEAU["load"], "bandwidth"), unit=_GIB),
}
