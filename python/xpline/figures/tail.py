"""Tail latency of writes round a hot spot: what wear levelling does to a few of them."""

from __future__ import annotations

import polars as pl

from xpline.figures import style
from xpline.figures.figure import Figure, legend_line, points
from xpline.figures.measured import Measurements
from xpline.sweeps import MIB, TAIL, Results

_SERIES = {
    "latency_max_ns": "slowest", "latency_p99999_ns": "99.999 %", "latency_p9999_ns": "99.99 %",
    "latency_p999_ns": "99.9 %",
}  # fmt: skip
_PANELS = {"optane": "Optane", "dram": "DRAM"}


def draw(results: Results, measured: Measurements) -> Figure:
    """A panel a memory, a curve a percentile; what the study measured was not published as numbers."""
    data = pl.concat(
        points(
            panel, name, "model", {region: ns / 1000 for region, ns in results.curve(TAIL[platform], column).items()}
        )
        for platform, panel in _PANELS.items()
        for column, name in _SERIES.items()
    )
    x = style.size_axis("hot spot", 256, 64 * MIB, every=8)
    y = style.magnitude("latency (µs)", 0.1, 1, 10, 100)
    colours = style.colour(list(_SERIES.values()))
    panels = [style.curves(data, panel, x, y, colours, width=450) for panel in _PANELS.values()]
    title = "Tail latency against hot spot"
    return Figure(
        "tail-latency",
        title,
        "Twenty million 64 B writes in order round a hot spot, each made persistent. When one line has been written "
        "some thousand times, wear levelling moves its page and stalls the next write for tens of microseconds; the "
        "wider the hot spot, the fewer the moves. Fewer than one write in 10,000 is stalled, so the lower percentiles "
        "lie on each other at the usual latency.",
        style.finish(style.beside([panels[0].add_params(style.PICK), *panels[1:]]), title, legend_line("lines", None)),
        data,
        None,
    )
