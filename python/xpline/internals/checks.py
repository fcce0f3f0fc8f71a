"""The model's inside beside the measured one: knees, plateaus, replacement, wear levelling, contention."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import mean, median

from xpline.internals.data import Internals
from xpline.sweeps import CHASE, CHASE_MASKED, CONTENTION, KIB, MIB, REPLACEMENT, TAKEN_APART, WEAR, Results, Sweep

#: A knee may be one step of the region off, a latency 10 %, a share of lines 0.05 on average, wear levelling 20 %,
#: and how many times as long a read takes beside others 20 %.
STEPS, LATENCY, SHARE, WEAR_LEVELLING, BESIDE = 1, 0.10, 0.05, 0.20, 0.20

#: Latency by which a region exceeds a buffer: this much more than that of the first region on the plateau.
_RISE = 0.02

#: First and last region of each plateau that a knee ends, by buffer.
_PLATEAUS = {"XPBuffer": (2 * KIB, 16 * KIB), "AIT cache": (4 * MIB, 16 * MIB)}

#: Where the knees of masked chases are looked for from.
_MASKED_FROM = MIB


@dataclass(frozen=True)
class Check:
    """One quantity, measured and modelled, in words, how far they are apart, and whether that is near enough."""

    quantity: str
    measured: str
    model: str
    error: str
    holds: bool


def checks(results: Results, data: Internals) -> list[Check]:
    """Every quantity that the data set has, in order."""
    parts = (_latencies, _masked, _replacement, _wear, _contention)
    return [check for part in parts for check in part(results, data)]


def cycles_per_ns(results: Results) -> float:
    """The clock that measured latencies are counted in: that of the platform's cores."""
    return float(results.parameter(TAKEN_APART, "core.clock").removesuffix("GHz"))


def knee(curve: dict[int, float], start: int) -> int:
    """The last region, from ``start`` on, before the latency rises.

    >>> knee({1: 50.0, 2: 100.0, 4: 101.0, 8: 101.5, 16: 140.0, 32: 100.0}, start=2)
    8
    """
    last = start
    for region, latency in curve.items():
        if region > start and latency > (1 + _RISE) * curve[start]:
            return last
        last = max(last, region) if region >= start else last
    return last


def _latencies(results: Results, data: Internals) -> Iterator[Check]:
    measured = data.chase()
    if not measured:
        return
    clock = cycles_per_ns(results)
    model = {region: clock * latency for region, latency in _both(results, CHASE, "latency_mean_ns", measured).items()}
    measured = {region: measured[region] for region in model}
    for buffer, (first, last) in _PLATEAUS.items():
        yield _knee(f"knee of the {buffer}", measured, model, first)
        on = [region for region in model if first <= region <= last]
        yield _number(f"latency within the {buffer}", "cycles", *(median(curve[region] for region in on)
                      for curve in (measured, model)), LATENCY)  # fmt: skip
    far = max(model)
    yield _number(f"latency of {_size(far)}", "cycles", measured[far], model[far], LATENCY)
    errors = [abs(model[region] / measured[region] - 1) for region in model]
    worst = max(errors)
    yield Check(f"latency of all {len(errors)} regions", "", "", f"median {median(errors):.1%}, worst {worst:.1%}",
                median(errors) <= LATENCY)  # fmt: skip


def _masked(results: Results, data: Internals) -> Iterator[Check]:
    for bits, sweep in CHASE_MASKED.items():
        measured = data.masked(bits)
        model = _both(results, sweep, "latency_mean_ns", measured)
        if measured and bits != "none":
            steps = {region: measured[region] for region in model}
            name = f"bit{'s' if '-' in bits else ''} {bits}"
            yield _knee(f"knee of the AIT cache, address {name} kept 0", steps, model, _MASKED_FROM)


def _replacement(results: Results, data: Internals) -> Iterator[Check]:
    names = {"xpbuffer": "XPBuffer", "ait": "AIT cache"}
    for (buffer, order), sweep in REPLACEMENT.items():
        measured = data.replacement(buffer, order)
        model = _both(results, sweep, "miss_ratio", measured)
        if model:
            apart = mean(abs(value - measured[lines]) for lines, value in model.items())
            shown = f"{mean(measured[lines] for lines in model):.3f}", f"{mean(model.values()):.3f}"
            name = f"{names[buffer]}: lines gone, read again in {order} order"
            yield Check(name, *shown, f"{apart:.3f} apart", apart <= SHARE)


def _wear(results: Results, data: Internals) -> Iterator[Check]:
    clock = cycles_per_ns(results)
    for size, medians in ((256, data.line_stalls()), (64, data.piece_stalls())):
        if medians:
            interval, stall = (results.value(WEAR[size], column) for column in ("stall_interval", "stall_ns"))
            yield _number(f"wear levelling: {size} B writes to a stall", "", medians[0], interval, WEAR_LEVELLING)
            yield _number("wear levelling: the stall", "cycles", medians[1], clock * stall, WEAR_LEVELLING)


def _contention(results: Results, data: Internals) -> Iterator[Check]:
    """How many times as long a read takes that is not alone: how long alone hangs on a region that is not stated."""
    measured = data.contention()
    model = {beside: results.value(CONTENTION[beside], "latency_mean_ns") for beside in measured}
    for beside in measured:
        if beside != "nobody" and "nobody" in measured:
            there, here = (latency[beside] / latency["nobody"] for latency in (measured, model))
            error = here / there - 1
            yield Check(f"contention: a read beside {beside}, over one alone", f"{there:.2f} x", f"{here:.2f} x",
                        f"{error:+.1%}", abs(error) <= BESIDE)  # fmt: skip


def _both(results: Results, sweep: Sweep, column: str, measured: dict[int, float]) -> dict[int, float]:
    """The model's curve at the steps that were measured too."""
    return {step: results.value(case, column) for step, case in sweep.cases.items() if step in measured}


def _knee(quantity: str, measured: dict[int, float], model: dict[int, float], start: int) -> Check:
    there, here = knee(measured, start), knee(model, start)
    steps = list(model)
    off = abs(steps.index(there) - steps.index(here))
    return Check(quantity, _size(there), _size(here), f"{off} step{'' if off == 1 else 's'}", off <= STEPS)


def _number(quantity: str, unit: str, measured: float, model: float, tolerance: float) -> Check:
    error = model / measured - 1
    shown = (f"{value:,.0f} {unit}".rstrip() for value in (measured, model))
    return Check(quantity, *shown, f"{error:+.1%}", abs(error) <= tolerance)


def _size(region: int) -> str:
    return f"{region / MIB:g} MiB" if region >= MIB else f"{region / KIB:g} KiB"
