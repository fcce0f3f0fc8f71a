"""Which instructions persist data best: bandwidth of six threads, and latency of one, against the size of a write."""

from __future__ import annotations

import polars as pl

from xpline.figures import style
from xpline.figures.figure import Figure, legend_line, median_error, points
from xpline.figures.measured import Measurements
from xpline.sweeps import KIB, PERSIST_BANDWIDTH, PERSIST_LATENCY, Results

_BANDWIDTH, _LATENCY = "bandwidth, six threads", "latency, one thread"


def draw(results: Results, measured: Measurements) -> Figure:
    """Two panels with a curve a sequence of instructions."""
    curves = []
    for op, sweep in PERSIST_BANDWIDTH.items():
        curves.append(points(_BANDWIDTH, op, "model", results.curve(sweep)))
        curves.append(points(_BANDWIDTH, op, "measured", measured.curve("12-flush_instr_bw.csv", "", op)))
    for op, sweep in PERSIST_LATENCY.items():
        curves.append(points(_LATENCY, op, "model", results.curve(sweep, "latency_mean_ns")))
        curves.append(points(_LATENCY, op, "measured", measured.curve("12-flush_instr_lat.csv", "", op)))
    data = pl.concat(curves)
    error = median_error(data)
    x = style.size_axis("size of a write", 64, 4 * KIB, every=2)
    colours = style.colour(list(PERSIST_BANDWIDTH))
    panels = [
        style.curves(data, panel, x, style.quantity(unit), colours, width=450)
        for panel, unit in [(_BANDWIDTH, "bandwidth (GiB/s)"), (_LATENCY, "latency (ns)")]
    ]
    title = "Flush instructions"
    return Figure(
        "flush-instructions",
        title,
        "Writes to six interleaved DIMMs, an sfence after each; for the bandwidth at random places, each thread on a "
        "DIMM of its own, as the sweep that holds the measured values was run. Plain stores leave the write-back to "
        "the caches, which scramble its order. store+clwb has to read a line before it writes it; ntstore does not, "
        "and wins for all but the smallest writes.",
        style.finish(style.beside([panels[0].add_params(style.PICK), *panels[1:]]), title, legend_line("lines", error)),
        data,
        error,
    )
