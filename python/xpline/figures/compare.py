"""Memories on the same axes: a figure for each experiment, a panel for whatever else varies."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import altair as alt
import polars as pl

from xpline.compare import METRICS, Comparison
from xpline.compare.comparison import Sweep
from xpline.figures import style
from xpline.figures.figure import Figure

#: Colours of memories, in the order in which they are compared.
_COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#444444")

#: Panels in a row, and the width of one by how many there are in it.
_IN_A_ROW = 3
_WIDTHS = {1: 960, 2: 440, 3: 270}
_HEIGHT = 230

_MIB_IN_GIB = 1024.0

_GIB = 1 << 30

#: As the axes of other figures, up to larger sizes.
_SIZE_LABEL = f"datum.value < {_GIB} ? ({style.SIZE_LABEL}) : datum.value / {_GIB} + ' GiB'"

#: Axes that are bytes.
_BYTES = ("size", "region", "stride", "fence", "clwb", "mask")


def draw(
    comparison: Comparison,
    titles: Mapping[str, tuple[str, str]] | None = None,
    marks: Mapping[str, float] | None = None,
) -> list[Figure]:
    """Every sweep of a comparison. ``titles`` has a title and a caption for experiments that deserve better than their
    names; ``marks`` are sizes in bytes to mark on the axis of regions, by name, such as those of caches."""
    figures = []
    for sweep in comparison.sweeps():
        if sweep.axis is None:
            continue
        if sweep.experiment == "loaded":
            figures.append(_loaded(sweep, comparison.memories, *(titles or {}).get("loaded", ("Loaded", ""))))
            continue
        title, caption = (titles or {}).get(sweep.experiment, (sweep.experiment.replace("-", " ").capitalize(), ""))
        data = pl.concat([_data(where, curves, sweep) for where, curves in sweep.panels(comparison.memories)])
        here = marks if sweep.axis == "region" else None
        panels = [
            _panel(sweep, data, name, comparison.memories, here, columns)
            for name, columns in _columns(data["panel"].unique(maintain_order=True).to_list())
        ]
        rows = [panels[at : at + _IN_A_ROW] for at in range(0, len(panels), _IN_A_ROW)]
        chart = alt.vconcat(*(alt.hconcat(*row, spacing=48) for row in rows), spacing=28)
        name = re.sub(r"[^a-z0-9]+", "-", f"{sweep.experiment}-{sweep.axis}".lower())
        subtitle = (
            "bars: 95 % confidence interval of a measured median" if sweep.frame["low"].drop_nulls().len() else ""
        )
        figures.append(Figure(name, title, caption, style.finish(chart, title, subtitle), data, None))
    return figures


def _loaded(sweep: Sweep, memories: Sequence[str], title: str, caption: str) -> Figure:
    """Latency against the bandwidth that others have at the same time, whatever made it."""
    rows = sweep.frame.drop_nulls("load")
    data = rows.select(
        pl.lit("").alias("panel"),
        pl.col("memory").alias("series"),
        (pl.col("load") / _MIB_IN_GIB).alias("x"),
        pl.col("value").alias("y"),
        "low",
        "high",
    )
    colour = style.colour_of(dict(zip(memories, _COLOURS * len(memories), strict=False)))
    x = alt.X(
        "x:Q",
        axis=alt.Axis(title="bandwidth of all threads (GiB/s)", format="~g", tickCount=8),
        scale=alt.Scale(type="log"),
    )
    y = _y("mean latency (ns)", data)
    base = alt.Chart(data)
    tooltip = [
        alt.Tooltip("series:N", title="memory"),
        alt.Tooltip("x:Q", title="GiB/s"),
        alt.Tooltip("y:Q", title="ns"),
    ]
    layers = [
        base.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour, order="x:Q"),
        base.mark_circle(size=22, opacity=1).encode(x=x, y=y, color=colour, tooltip=tooltip),
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=1.4)
        .encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=colour),
    ]
    chart = alt.layer(*layers, width=_WIDTHS[1], height=_HEIGHT)
    subtitle = "bars: 95 % confidence interval of a measured median" if data["low"].drop_nulls().len() else ""
    return Figure("loaded-latency", title, caption, style.finish(chart, title, subtitle), data, None)


def _columns(panels: Sequence[str]) -> list[tuple[str, int]]:
    """Each panel, with how many stand in its row at most."""
    return [(panel, min(len(panels), _IN_A_ROW)) for panel in panels]


def _data(where: str, curves: Mapping[str, Mapping[float, float]], sweep: Sweep) -> pl.DataFrame:
    scale = _MIB_IN_GIB if sweep.metric == "bandwidth_mib_s" else 1.0
    intervals = {
        (row["memory"], row[sweep.axis], row["value"]): (row["low"], row["high"])
        for row in sweep.frame.iter_rows(named=True)
        if row["low"] is not None
    }
    rows = []
    for memory, curve in curves.items():
        for x, y in curve.items():
            low, high = intervals.get((memory, x, y), (None, None))
            rows.append((where, memory, float(x), y / scale, low and low / scale, high and high / scale))
    schema = dict.fromkeys(("panel", "series"), pl.String) | dict.fromkeys(("x", "y", "low", "high"), pl.Float64)
    return pl.DataFrame(rows, schema=schema, orient="row")


def _panel(
    sweep: Sweep,
    data: pl.DataFrame,
    panel: str,
    memories: Sequence[str],
    marks: Mapping[str, float] | None,
    columns: int,
) -> alt.LayerChart:
    points = data.filter(panel=panel)
    name, unit, _ = METRICS[sweep.metric]
    unit = "GiB/s" if sweep.metric == "bandwidth_mib_s" else unit
    x, y = _x(sweep.axis or "", data), _y(f"{name} ({unit})", data)
    known = dict(zip(memories, _COLOURS * len(memories), strict=False))
    colour = style.colour_of(known)
    tooltip = [
        alt.Tooltip("series:N", title="memory"),
        alt.Tooltip("x:Q", title=sweep.axis, format=","),
        alt.Tooltip("y:Q", title=f"{name} ({unit})", format=".4~g"),
    ]
    base = alt.Chart(points)
    layers = [
        base.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour),
        base.mark_circle(size=22, opacity=1).encode(x=x, y=y, color=colour, tooltip=tooltip),
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=1.4)
        .encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=colour),
    ]
    if marks:
        ticks = pl.DataFrame({"at": list(marks.values()), "name": list(marks)})
        end = points["x"].max()
        rule = alt.Chart(ticks.filter(pl.col("at") <= end))
        layers.append(rule.mark_rule(strokeDash=[4, 4], color="#8a949c").encode(x="at:Q"))
        text = rule.mark_text(align="left", dx=4, dy=8, baseline="top", fontSize=11, color="#5b6874")
        layers.append(text.encode(x="at:Q", y=alt.value(0), text="name:N"))
    titled = {"title": style.panel_title(panel)} if panel else {}
    return alt.layer(*layers, width=_WIDTHS[columns], height=_HEIGHT, **titled)


def _x(axis: str, data: pl.DataFrame) -> alt.X:
    """Bytes and counts double from one label to the next."""
    values = sorted(data["x"].unique().to_list())
    positive = [value for value in values if value > 0] or [1.0]
    first, last = positive[0], max(positive[-1], positive[0] * 2)
    if axis in _BYTES:
        x = style.size_axis({"size": "access size"}.get(axis, axis), int(first), int(last))
        if last >= _GIB:
            x["axis"]["labelExpr"] = _SIZE_LABEL
        return x
    scale = alt.Scale(type="log", base=2, domain=[first, last], nice=False)
    return alt.X("x:Q", scale=scale, axis=alt.Axis(title=axis, values=positive, format="d", labelOverlap="greedy"))


def _y(title: str, data: pl.DataFrame) -> alt.Y:
    """Logarithmic where values are far apart."""
    low, high = data["y"].min(), data["y"].max()
    if not low or high / low < 20:
        return style.quantity(title)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return style.magnitude(title, *(10.0**power for power in range(first, last + 1)))
