"""Replacement probes: which lines a buffer has given up when they are read again."""

from __future__ import annotations

import polars as pl

from xpline.figures import style
from xpline.figures.figure import Figure, points
from xpline.figures.measured import Measurements
from xpline.sweeps import REPLACEMENT, Results

_PANELS = {"xpbuffer": "XPBuffer", "ait": "one set of the AIT cache"}
_ORDERS = ("same", "reverse", "random")


def draw(results: Results, measured: Measurements) -> Figure:
    """A panel a buffer, a curve an order."""
    curves = []
    for (buffer, order), sweep in REPLACEMENT.items():
        curves.append(points(_PANELS[buffer], order, "model", results.curve(sweep, "miss_ratio")))
        curves.append(points(_PANELS[buffer], order, "measured", measured.internals.replacement(buffer, order)))
    data = pl.concat(curves)
    model, there = (data.filter(source=source) for source in ("model", "measured"))
    both = model.join(there, on=["panel", "series", "x"], suffix="_measured")
    apart = both.select((pl.col("y") - pl.col("y_measured")).abs().mean()).item()
    colours = style.colour(_ORDERS, "read again in this order")
    panels = [
        style.curves(
            data, panel, style.count_axis(f"{what} read", last, every), style.quantity("share gone"), colours, width=450
        )
        for panel, what, last, every in [(_PANELS["xpbuffer"], "lines", 128, 16), (_PANELS["ait"], "pages", 40, 4)]
    ]
    subtitle = "lines: model"
    if apart is not None:
        subtitle += f" · hollow points: measured, each a single probe · {apart:.3f} apart in the mean"
    title = "Replacement"
    return Figure(
        "replacement",
        title,
        "Lines are read once, then again in the same, in reverse or in random order; what is gone by then tells how a "
        "buffer makes room. The XPBuffer gives up the line that came first; a set of the table's cache the first "
        "of its 16 pages without a mark of use.",
        style.finish(style.beside([panels[0].add_params(style.PICK), *panels[1:]]), title, subtitle),
        data,
        None,
    )
