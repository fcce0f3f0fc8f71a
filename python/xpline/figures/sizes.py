"""Bandwidth against access size, random accesses: DRAM, one Optane DIMM, six interleaved."""

from __future__ import annotations

import polars as pl

from xpline.figures import style
from xpline.figures.figure import Figure, legend_line, median_error, points
from xpline.figures.measured import Measurements
from xpline.figures.threads import PANELS
from xpline.sweeps import BEST_THREADS, MIB, OPS, SIZES, Results

_COLUMNS = dict(zip(OPS, ("Read", "Write(ntstore)", "Write(clwb)"), strict=True))


def draw(results: Results, measured: Measurements) -> Figure:
    """Three panels with a curve an operation."""
    titles = {
        platform: f"{panel} ({'/'.join(str(BEST_THREADS[platform, op]) for op in OPS)} threads)"
        for platform, panel in PANELS.items()
    }
    curves = []
    for platform, panel in titles.items():
        file = f"05-bandwidth_accesssize_{platform.replace('-', '_')}.csv"
        for op in OPS:
            curves.append(points(panel, op, "model", results.curve(SIZES[platform, op])))
            curves.append(points(panel, op, "measured", measured.curve(file, "AccessSize", _COLUMNS[op])))
    data = pl.concat(curves)
    error = median_error(data)
    colours = style.colour(OPS)
    x = style.size_axis("access size", 64, 2 * MIB, every=8)
    panels = [style.curves(data, panel, x, style.quantity("bandwidth (GiB/s)"), colours) for panel in titles.values()]
    title = "Bandwidth against access size"
    return Figure(
        "bandwidth-size",
        title,
        "Random accesses, with the threads that suit each curve best (load/ntstore/store+clwb in each panel's title). "
        "Below 256 B, the XPLine, Optane moves more than was asked for. Around 4 KiB, the interleaving size, accesses "
        "of several threads meet at the same DIMM; at 24 KiB and 48 KiB each access covers all six evenly. The "
        "vertical scales differ.",
        style.finish(style.beside([panels[0].add_params(style.PICK), *panels[1:]]), title, legend_line("lines", error)),
        data,
        error,
    )
