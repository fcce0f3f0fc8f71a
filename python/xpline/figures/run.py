"""Figures of a run: traffic over time, where the time went, the balance of the DIMMs."""

from __future__ import annotations

import altair as alt
import polars as pl

from xpline.figures.figure import COLUMNS, Figure
from xpline.figures.style import finish, panel_title
from xpline.run.outcome import Run

#: What was counted, by panel: the name in the data, and the colour.
TRAFFIC = {
    "writes": {"controllers": ("imc_written", "#0072B2"), "media": ("media_written", "#D55E00")},
    "reads": {"controllers": ("imc_read", "#0072B2"), "media": ("media_read", "#D55E00")},
}

#: The causes of time, and their colours.
CAUSE_COLOURS = {
    "compute": "#BBBBBB",
    "cache": "#009E73",
    "link": "#56B4E9",
    "buffer": "#0072B2",
    "media": "#D55E00",
    "queue": "#E69F00",
    "fence": "#882255",
}


def draw_run(run: Run) -> list[Figure]:
    """Every figure of a run's page."""
    figures = [_bandwidth(run), _causes(run)]
    if len(run.main.data["dimms"]) > 1:
        figures.append(_dimms(run))
    return figures


def _bandwidth(run: Run) -> Figure:
    width = run.main.data["bin_ps"] / 1e12
    rows = [
        (panel, series, (number + 0.5) * width * 1e3, traffic[name] / width / 1e9, "model")
        for number, traffic in enumerate(run.main.data["timeline"])
        for panel, lines in TRAFFIC.items()
        for series, (name, _) in lines.items()
    ]
    data = pl.DataFrame(rows, schema=COLUMNS, orient="row")
    colours = alt.Scale(domain=["controllers", "media"], range=["#0072B2", "#D55E00"])
    encoding = {
        "y": alt.Y("y:Q", axis=alt.Axis(title="GB/s", tickCount=5)),
        "color": alt.Color("series:N", scale=colours, legend=alt.Legend(title=None, orient="bottom")),
        "tooltip": [
            alt.Tooltip("series:N"),
            alt.Tooltip("x:Q", title="ms", format=".3f"),
            alt.Tooltip("y:Q", title="GB/s", format=".3f"),
        ],
    }
    panels = []
    for panel in TRAFFIC:
        title = "modelled time (ms)" if panel == "reads" else None
        x = alt.X("x:Q", axis=alt.Axis(title=title, tickCount=10), scale=alt.Scale(nice=False))
        line = alt.Chart(data.filter(panel=panel)).mark_line(strokeWidth=1.6, interpolate="step")
        panels.append(line.encode(x=x, **encoding).properties(title=panel_title(panel), width=920, height=130))
    title = f"Traffic over time on {run.main.platform.name}"
    caption = "Where the media lie above the controllers, the device moves more bytes than it is asked for."
    return Figure("traffic", title, caption, finish(alt.vconcat(*panels), title, ""), data, None)


def _causes(run: Run) -> Figure:
    rows = [
        (outcome.platform.name, cause, float(number), time / 1e6, "model")
        for outcome in run.outcomes
        for number, (cause, time) in enumerate(outcome.causes_ns.items())
    ]
    data = pl.DataFrame(rows, schema=COLUMNS, orient="row")
    names = [outcome.platform.name for outcome in run.outcomes]
    colours = alt.Scale(domain=list(CAUSE_COLOURS), range=list(CAUSE_COLOURS.values()))
    chart = (
        alt.Chart(data)
        .mark_bar(size=26)
        .encode(
            y=alt.Y("panel:N", title=None, sort=names, axis=alt.Axis(ticks=False)),
            x=alt.X("y:Q", stack="zero", axis=alt.Axis(title="core time, all threads together (ms)", tickCount=8)),
            color=alt.Color("series:N", scale=colours, sort=list(CAUSE_COLOURS),
                            legend=alt.Legend(title=None, orient="bottom", symbolType="square")),
            order=alt.Order("x:Q"),
            tooltip=["panel:N", "series:N", alt.Tooltip("y:Q", title="ms", format=".3f")],
        )
        .properties(width=860, height=44 * len(run.outcomes))
    )  # fmt: skip
    title = "Where the time goes"
    caption = (
        "compute: instructions at the platform's rate; link, buffer, media: the parts of a line's way that a "
        "thread waited for; "
        "queue: behind other requests; fence: for what must be persistent first."
    )
    return Figure("causes", title, caption, finish(chart, title, ""), data, None)


def _dimms(run: Run) -> Figure:
    rows = [
        (f"DIMM {number}", series, float(number), dimm[name] / 2**20, "model")
        for number, dimm in enumerate(run.main.data["dimms"])
        for series, name in (
            ("read from the media", "media_read_bytes"),
            ("written to the media", "media_written_bytes"),
        )
    ]
    data = pl.DataFrame(rows, schema=COLUMNS, orient="row")
    colours = alt.Scale(domain=["read from the media", "written to the media"], range=["#0072B2", "#D55E00"])
    chart = (
        alt.Chart(data)
        .mark_bar()
        .encode(
            x=alt.X("panel:N", title=None, axis=alt.Axis(labelAngle=0, ticks=False)),
            xOffset="series:N",
            y=alt.Y("y:Q", axis=alt.Axis(title="MiB", tickCount=6)),
            color=alt.Color(
                "series:N", scale=colours, legend=alt.Legend(title=None, orient="bottom", symbolType="square")
            ),
            tooltip=["panel:N", "series:N", alt.Tooltip("y:Q", title="MiB", format=",.2f")],
        )
        .properties(width=860, height=180)
    )
    title = "Balance of the DIMMs"
    caption = "Media traffic of each DIMM over the whole run."
    return Figure("dimms", title, caption, finish(chart, title, ""), data, None)
