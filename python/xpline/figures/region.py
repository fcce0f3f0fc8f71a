"""Latency of a pointer chase against its region: the knees of the DIMM's buffers."""

from __future__ import annotations

import polars as pl

from xpline.figures import style
from xpline.figures.figure import Figure, legend_line, median_error, points
from xpline.figures.measured import Measurements
from xpline.internals import cycles_per_ns
from xpline.sweeps import CHASE, MIB, Results

_PANEL = _SERIES = "pointer chase"


def draw(results: Results, measured: Measurements) -> Figure:
    """One curve; measured cycles are turned to time by the clock that the platform states."""
    clock = cycles_per_ns(results)
    there = {region: cycles / clock for region, cycles in measured.internals.chase().items()}
    model = results.curve(CHASE, "latency_mean_ns")
    data = pl.concat([points(_PANEL, _SERIES, "model", model), points(_PANEL, _SERIES, "measured", there)])
    error = median_error(data)
    x = style.size_axis("region", 64, 64 * MIB)
    colours = style.colour([_SERIES]).legend(None)
    curve = style.curves(data, _PANEL, x, style.quantity("mean latency (ns)"), colours, *style.SINGLE)
    title = "Latency against region"
    return Figure(
        "latency-region",
        title,
        "Loads that wait for each other, at random lines of a region of one DIMM and past the caches. Up to 16 KiB the "
        "lines are in the XPBuffer; above 16 MiB the cache of the address indirection table no longer holds all "
        f"pages. Measured on another DIMM than the other figures, in cycles, {clock:g} of which are taken for 1 ns.",
        style.finish(curve.add_params(style.PICK), title, legend_line("line", error)),
        data,
        error,
    )
