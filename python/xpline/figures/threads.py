"""Bandwidth against threads, sequential accesses of 256 B: DRAM, one Optane DIMM, six interleaved."""

from __future__ import annotations

import polars as pl

from xpline.figures import style
from xpline.figures.figure import Figure, legend_line, median_error, points
from xpline.figures.measured import Measurements
from xpline.sweeps import OPS, THREADS, Results

PANELS = {"dram": "DRAM", "optane-ni": "Optane, one DIMM", "optane": "Optane, six interleaved DIMMs"}

_READ, _NT, _CLWB = "Read", "Write(ntstore)", "Write(clwb)"

#: Where the measured values stand. The headers of the write columns of the interleaved file are swapped.
_FILES = {
    "dram": ("04-bandwidth_thcount_dram.csv", (_READ, _NT, _CLWB)),
    "optane-ni": ("04-bandwidth_thcount_optane_ni.csv", (_READ, _NT, _CLWB)),
    "optane": ("04-bandwidth_thcount_optane.csv", (_READ, _CLWB, _NT)),
}


def draw(results: Results, measured: Measurements) -> Figure:
    """Three panels with a curve an operation."""
    curves = []
    for platform, panel in PANELS.items():
        file, columns = _FILES[platform]
        for op, column in zip(OPS, columns, strict=True):
            curves.append(points(panel, op, "model", results.curve(THREADS[platform, op])))
            curves.append(points(panel, op, "measured", measured.curve(file, "Threads", column)))
    data = pl.concat(curves)
    error = median_error(data)
    colours = style.colour(OPS)
    panels = [
        style.curves(data, panel, style.count_axis("threads", 24, 4), style.quantity("bandwidth (GiB/s)"), colours)
        for panel in PANELS.values()
    ]
    title = "Bandwidth against threads"
    return Figure(
        "bandwidth-threads",
        title,
        "Sequential accesses of 256 B, those that flush with an sfence after each. DRAM scales until its channels are "
        "full. One Optane DIMM peaks with one to four threads and slows down with more, as writers push each other's "
        "lines out of its 16 KiB buffer; interleaving moves the peaks out. The vertical scales differ.",
        style.finish(style.beside([panels[0].add_params(style.PICK), *panels[1:]]), title, legend_line("lines", error)),
        data,
        error,
    )
