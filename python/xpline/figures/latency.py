"""Idle latency: loads, and writes that are made persistent."""

from __future__ import annotations

import altair as alt
import polars as pl

from xpline.figures import style
from xpline.figures.figure import Figure, legend_line
from xpline.figures.measured import Measurements
from xpline.sweeps import LATENCY, Results

#: What each bar shows, and the row of the published file.
_BARS = {
    ("load", "sequential"): ("sequential load", "Read\\Sequential"),
    ("load", "random"): ("random load", "Read\\Random"),
    ("ntstore", "sequential"): ("ntstore + fence", "Write\\(ntstore)"),
    ("store+clwb", "sequential"): ("store + clwb + fence", "Write\\(clwb)"),
}
_PLATFORMS = {"dram": "DRAM", "optane": "Optane"}


def draw(results: Results, measured: Measurements) -> Figure:
    """Grouped bars, with the measured mean and its standard deviation on top."""
    rows = []
    published = {
        row[0]: row[1:]
        for row in measured.graph("02-best_case_latency.csv", ["", *_COLUMNS]).iter_rows()
    }  # fmt: skip
    for (platform, op, pattern), case in LATENCY.items():
        bar, name = _BARS[op, pattern]
        mean, deviation = (results.value(case, f"latency_{what}_ns") for what in ("mean", "std"))
        rows.append((_PLATFORMS[platform], bar, mean, deviation, "model"))
        if name in published:
            values = dict(zip(_COLUMNS, published[name], strict=True))
            column = _PLATFORMS[platform]
            rows.append((column, bar, values[column], values[f"{column}-Err"], "measured"))
    data = pl.DataFrame(rows, schema=["platform", "access", "mean_ns", "std_ns", "source"], orient="row")
    error = _median_error(data)
    title = "Idle latency"
    return Figure(
        "latency",
        title,
        "Mean latency of single accesses, each fenced. A sequential load finds its line in the DIMM's buffer three "
        "times in four, which is why its measured latency varies so much; a write is done once the memory controller "
        "has accepted it, so both memories are close. Whiskers are one standard deviation of the measurement.",
        style.finish(_bars(data), title, legend_line("bars", error)),
        data,
        error,
    )


_COLUMNS = ["DRAM", "DRAM-Err", "Optane", "Optane-Err"]


def _median_error(data: pl.DataFrame) -> float | None:
    model, measured = (data.filter(source=source) for source in ("model", "measured"))
    both = model.join(measured, on=["platform", "access"], suffix="_measured")
    return both.select((pl.col("mean_ns") / pl.col("mean_ns_measured") - 1).abs().median()).item()


def _bars(data: pl.DataFrame) -> alt.LayerChart:
    order = [bar for bar, _ in _BARS.values()]
    colours = alt.Color(
        "platform:N",
        scale=alt.Scale(domain=list(_PLATFORMS.values()), range=["#56B4E9", "#0072B2"]),
        legend=alt.Legend(title=None, orient="bottom"),
    )
    place = {
        "x": alt.X("access:N", sort=order, title=None, axis=alt.Axis(labelAngle=0), scale=alt.Scale(paddingInner=0.3)),
        "xOffset": alt.XOffset("platform:N", sort=list(_PLATFORMS.values())),
    }
    tooltip = [
        alt.Tooltip("platform:N"),
        alt.Tooltip("access:N"),
        alt.Tooltip("source:N"),
        alt.Tooltip("mean_ns:Q", title="mean (ns)", format=".1f"),
        alt.Tooltip("std_ns:Q", title="standard deviation (ns)", format=".1f"),
    ]
    model, measured = (data.filter(source=source) for source in ("model", "measured"))
    measured = measured.with_columns(
        low=pl.max_horizontal(0.0, pl.col("mean_ns") - pl.col("std_ns")), high=pl.col("mean_ns") + pl.col("std_ns")
    )
    bars = (
        alt.Chart(model)
        .mark_bar()
        .encode(**place, y=alt.Y("mean_ns:Q", title="mean latency (ns)"), color=colours, tooltip=tooltip)
    )
    labels = (
        alt.Chart(model)
        .mark_text(dy=-7, fontSize=11, color="#333", align="center")
        .encode(**place, y="mean_ns:Q", text=alt.Text("mean_ns:Q", format=".0f"))
    )
    whiskers = (
        alt.Chart(measured)
        .mark_rule(color="black", strokeWidth=1)
        .encode(**place, y=alt.Y("low:Q", title="mean latency (ns)"), y2="high:Q")
    )
    rings = alt.Chart(measured).mark_point(
        filled=True, fill="white", stroke="black", strokeWidth=1.5, size=60, opacity=1
    ).encode(**place, y="mean_ns:Q", tooltip=tooltip)  # fmt: skip
    layers = (bars, whiskers, rings) if measured.height else (bars, labels)
    return alt.layer(*layers, width=style.SINGLE[0], height=style.SINGLE[1])
