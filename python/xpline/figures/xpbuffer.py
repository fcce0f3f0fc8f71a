"""Write amplification against the region of the half-line rounds: how many XPLines the buffer combines."""

from __future__ import annotations

import altair as alt
import polars as pl

from xpline.figures import style
from xpline.figures.figure import Figure, legend_line, median_error, points
from xpline.figures.measured import Measurements
from xpline.sweeps import KIB, MIB, XPBUFFER, Results

_LINE = 256


def draw(results: Results, measured: Measurements) -> Figure:
    """One curve, and the published capacity."""
    model = {lines * _LINE: 1 / ewr for lines, ewr in results.curve(XPBUFFER, "ewr").items()}
    panel = series = "half-line rounds"
    data = pl.concat([
        points(panel, series, "model", model),
        points(panel, series, "measured", measured.curve("09-infer_xpbuffer.csv", "RegionSize", "WriteAmp")),
    ])  # fmt: skip
    error = median_error(data)
    x = style.size_axis("region", 256, 2 * MIB)
    colours = style.colour([series]).legend(None)
    y = style.quantity("bytes the media wrote / bytes issued")
    curve = style.curves(data, panel, x, y, colours, *style.SINGLE)
    capacity = pl.DataFrame({"x": [16.0 * KIB], "text": ["64 XPLines = 16 KiB"]})
    rule = alt.Chart(capacity).mark_rule(strokeDash=[4, 3], color="#888").encode(x=x)
    label = (
        alt.Chart(capacity)
        .mark_text(align="right", dx=-6, baseline="bottom", fontSize=11, color="#555")
        .encode(x=x, y=alt.value(20), text="text:N")
    )
    layers = alt.layer(rule, label, *curve.layer, title=curve.title, width=curve.width, height=curve.height)
    title = "Write amplification against region"
    return Figure(
        "xpbuffer",
        title,
        "Rounds that write the first half of every XPLine of a region, then every second half. While the region fits "
        "in the DIMM's buffer, the halves meet there and each line is written once; beyond 64 lines each half costs a "
        "whole line.",
        style.finish(layers.add_params(style.PICK), title, legend_line("line", error)),
        data,
        error,
    )
