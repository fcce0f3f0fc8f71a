"""Contention at the memory controllers: bandwidth against access size, by the DIMMs that each thread touches."""

from __future__ import annotations

import polars as pl

from xpline.figures import style
from xpline.figures.figure import Figure, legend_line, median_error, points
from xpline.figures.measured import Measurements
from xpline.sweeps import KIB, SPREAD, SPREAD_THREADS, Results

_SERIES = {1: "1 DIMM a thread", 2: "2 DIMMs a thread", 6: "6 DIMMs a thread"}


def draw(results: Results, measured: Measurements) -> Figure:
    """A panel an operation, a curve a number of DIMMs."""
    panels = {op: f"{op}, {threads} threads" for op, threads in SPREAD_THREADS.items()}
    curves = []
    for (op, dimms), sweep in SPREAD.items():
        curves.append(points(panels[op], _SERIES[dimms], "model", results.curve(sweep)))
        curves.append(points(panels[op], _SERIES[dimms], "measured", measured.sweep(sweep)))
    data = pl.concat(curves)
    error = median_error(data)
    colours = style.colour(list(_SERIES.values()))
    x = style.size_axis("access size", 64, 4 * KIB, every=2)
    charts = [
        style.curves(data, panel, x, style.quantity("bandwidth (GiB/s)"), colours, width=450)
        for panel in panels.values()
    ]
    title = "Contention at the memory controllers"
    return Figure(
        "imc-contention",
        title,
        "Random accesses to six DIMMs by as many threads throughout, evenly spread. The more DIMMs each thread goes "
        "to, the more often threads meet at one of them and wait behind each other in its queue: at 4 KiB bandwidth "
        "falls while the media write no more than before.",
        style.finish(style.beside([charts[0].add_params(style.PICK), *charts[1:]]), title, legend_line("lines", error)),
        data,
        error,
    )
