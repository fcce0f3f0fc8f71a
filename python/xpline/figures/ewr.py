"""EWR against bandwidth: many ways of writing to one DIMM."""

from __future__ import annotations

import altair as alt
import polars as pl

from xpline.figures import style
from xpline.figures.figure import Figure, legend_line
from xpline.figures.measured import Measurements
from xpline.sweeps import EWR_GRID, KIB, Results

_FILES = {"ntstore": "08-ntstore.csv", "store+clwb": "08-storeclwb.csv", "store": "08-store.csv"}
_SCHEMA = {
    "series": pl.String, "access": pl.String, "ewr": pl.Float64, "bandwidth_gib_s": pl.Float64, "source": pl.String,
}  # fmt: skip


def draw(results: Results, measured: Measurements) -> Figure:
    """A panel an operation, a point a configuration."""
    rows, bandwidth_errors, ewr_errors = [], [], []
    for (op, size, threads), case in EWR_GRID.items():
        access = "sequential" if size == "sequential" else f"random {size} B"
        access += f", {threads} thread{'s' if threads > 1 else ''}"
        bandwidth, ewr = results.value(case, "bandwidth"), results.value(case, "ewr")
        rows.append((op, access, ewr, bandwidth, "model"))
        same = measured.of(case)
        if same and same.ewr is not None:
            rows.append((op, access, same.ewr, same.bandwidth_mib_s / KIB, "measured"))
            bandwidth_errors.append(abs(bandwidth / (same.bandwidth_mib_s / KIB) - 1))
            ewr_errors.append(abs(ewr - same.ewr))
    for op, file in _FILES.items():
        for _, ewr, mib_s in measured.scatter(file):
            rows.append((op, "the study's figure", ewr, mib_s / KIB, "measured"))
    data = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    error = pl.Series(bandwidth_errors, dtype=pl.Float64).median()
    subtitle = legend_line("filled points", error)
    if ewr_errors:
        subtitle += f" in bandwidth, {pl.Series(ewr_errors).median():.3f} in EWR, over {len(ewr_errors)} configurations"
    title = "EWR against bandwidth of one DIMM"
    return Figure(
        "ewr-bandwidth",
        title,
        "Each point is a configuration: random accesses of 64 B to 4 KiB and sequential ones, 1 to 16 threads. The "
        "bandwidth of a DIMM is what its media can write, times the share of it that programs asked for: the "
        "effective write ratio (EWR).",
        style.finish(style.beside([_panel(data, op) for op in _FILES]), title, subtitle),
        data,
        error,
    )


def _panel(data: pl.DataFrame, op: str) -> alt.LayerChart:
    end = max(1.1, data["ewr"].max())
    x = alt.X("ewr:Q", scale=alt.Scale(domain=[0, end], nice=False), axis=alt.Axis(title="EWR", tickCount=6))
    top = max(2.5, data["bandwidth_gib_s"].max())
    y = alt.Y("bandwidth_gib_s:Q", title="bandwidth (GiB/s)", scale=alt.Scale(domain=[0, top], nice=False))
    tooltip = [
        alt.Tooltip("access:N"),
        alt.Tooltip("source:N"),
        alt.Tooltip("ewr:Q", title="EWR", format=".3f"),
        alt.Tooltip("bandwidth_gib_s:Q", title="bandwidth (GiB/s)", format=".2f"),
    ]
    model, measured = (data.filter(series=op, source=source) for source in ("model", "measured"))
    rings = alt.Chart(measured).mark_point(filled=False, size=22, strokeWidth=0.9, color="#777", opacity=0.55)
    dots = alt.Chart(model).mark_point(
        filled=True, shape="diamond", size=70, color=style.COLOURS[op], opacity=0.9, stroke="white", strokeWidth=0.6
    )
    layers = [mark.encode(x=x, y=y, tooltip=tooltip) for mark in (rings, dots)]
    return alt.layer(*layers, title=style.panel_title(op), width=style.WIDTH, height=style.HEIGHT)
