"""How much longer a read takes while another thread reads or writes on the DIMM."""

from __future__ import annotations

import altair as alt
import polars as pl

from xpline.figures import style
from xpline.figures.figure import Figure, legend_line, median_error, points
from xpline.figures.measured import Measurements
from xpline.sweeps import CONTENTION, Results


def draw(results: Results, measured: Measurements) -> Figure:
    """A bar for what goes on beside the reader, over its latency alone."""
    model = {beside: results.value(case, "latency_mean_ns") for beside, case in CONTENTION.items()}
    sides = {"model": model, "measured": measured.internals.contention()}
    data = pl.concat(
        points("", beside, source, {1: latency / latencies["nobody"]})
        for source, latencies in sides.items()
        for beside, latency in latencies.items()
        if beside != "nobody" and "nobody" in latencies
    )
    error = median_error(data)
    title = "Contention on one DIMM"
    return Figure(
        "dimm-contention",
        title,
        "The latency of a reader of random lines, each after the other, while another thread reads or writes in "
        "sequence on the same DIMM as fast as it can. One more reader is hardly felt; a writer's lines keep the media "
        "busy.",
        style.finish(_bars(data), title, legend_line("bars", error)),
        data,
        error,
    )


def _bars(data: pl.DataFrame) -> alt.LayerChart:
    place = alt.Y("series:N", title="beside", sort=list(CONTENTION))
    times = alt.X(
        "y:Q", title="times the latency alone", axis=alt.Axis(tickCount=6), scale=alt.Scale(zero=True, nice=6)
    )
    tooltip = [alt.Tooltip("series:N", title="beside"), "source:N", alt.Tooltip("y:Q", title="times", format=".2f")]
    model, measured = (alt.Chart(data.filter(source=source)) for source in ("model", "measured"))
    bars = model.mark_bar(color="#0072B2", height=22).encode(x=times, y=place, tooltip=tooltip)
    rings = measured.mark_point(
        filled=True, fill="white", stroke="black", strokeWidth=1.5, size=60, opacity=1
    ).encode(x=times, y=place, tooltip=tooltip)  # fmt: skip
    return alt.layer(bars, rings, width=style.SINGLE[0], height=120)
