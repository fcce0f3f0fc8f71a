"""Bandwidth of one writer against how often it fences, and when it flushes."""

from __future__ import annotations

import polars as pl

from xpline.figures import style
from xpline.figures.figure import Figure, legend_line, median_error, points
from xpline.figures.measured import Measurements
from xpline.sweeps import MIB, SFENCE, Results

_SERIES = {"during": "clwb after each 64 B", "after": "clwb after the whole write"}


def draw(results: Results, measured: Measurements) -> Figure:
    """Two curves."""
    panel = "one thread, one DIMM"
    curves = []
    for when, sweep in SFENCE.items():
        curves.append(points(panel, _SERIES[when], "model", results.curve(sweep)))
        curves.append(points(panel, _SERIES[when], "measured", measured.sweep(sweep)))
    data = pl.concat(curves)
    error = median_error(data)
    x = style.size_axis("size of a write = sfence interval", 64, 64 * MIB)
    colours = style.colour(list(_SERIES.values()))
    chart = style.curves(data, panel, x, style.quantity("bandwidth (GiB/s)"), colours, *style.SINGLE)
    title = "sfence interval"
    return Figure(
        "sfence-interval",
        title,
        "Sequential stores of one thread to one DIMM, an sfence after each write. Short writes wait for each fence; "
        "a write that is flushed only at its end loses bandwidth once it no longer fits in the caches.",
        style.finish(chart.add_params(style.PICK), title, legend_line("lines", error)),
        data,
        error,
    )
