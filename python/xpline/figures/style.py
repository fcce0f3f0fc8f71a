"""How figures look: colours that colour-blind readers can tell apart (Okabe and Ito), quiet axes, units on them."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import polars as pl

#: One colour for each operation, in every figure.
COLOURS = {
    "load": "#0072B2",
    "ntstore": "#D55E00",
    "store+clwb": "#009E73",
    "store": "#CC79A7",
}

#: Colours where series are not operations.
OTHERS = ("#0072B2", "#E69F00", "#882255", "#009E73")

WIDTH, HEIGHT = 290, 230

#: Width and height of a figure of one panel.
SINGLE = (960, 260)

#: About how many labels a vertical axis bears.
TICKS = 6

SIZE_LABEL = (
    "datum.value < 1024 ? datum.value + ' B' : datum.value < 1048576 ? datum.value / 1024 + ' KiB' "
    ": datum.value / 1048576 + ' MiB'"
)


def size_axis(title: str, first: int, last: int, every: int = 4) -> alt.X:
    """A logarithmic axis of bytes, labelled at ``first`` and then at each ``every``-fold size."""
    values = [first]
    while values[-1] * every <= last:
        values.append(values[-1] * every)
    return alt.X(
        "x:Q",
        scale=alt.Scale(type="log", base=2, domain=[first, last], nice=False),
        axis=alt.Axis(title=title, values=values, labelExpr=SIZE_LABEL, labelAngle=0, labelOverlap="greedy"),
    )


def count_axis(title: str, last: int, every: int) -> alt.X:
    """A linear axis of whole numbers from 0."""
    ticks = list(range(0, last + 1, every))
    return alt.X("x:Q", scale=alt.Scale(domain=[0, last], nice=False), axis=alt.Axis(title=title, values=ticks))


def quantity(title: str) -> alt.Y:
    """A linear axis from zero to a labelled end."""
    return alt.Y("y:Q", scale=alt.Scale(zero=True, nice=TICKS), axis=alt.Axis(title=title, tickCount=TICKS))


def magnitude(title: str, *values: float) -> alt.Y:
    """A logarithmic axis from the first to the last of the values that it is labelled at."""
    scale = alt.Scale(type="log", domain=[values[0], values[-1]], nice=False)
    return alt.Y("y:Q", scale=scale, axis=alt.Axis(title=title, values=list(values), format="~g"))


def colour(series: Sequence[str], title: str | None = None) -> alt.Color:
    """The colour of each series, with a legend below the figure."""
    known = [COLOURS[name] for name in series] if set(series) <= set(COLOURS) else list(OTHERS[: len(series)])
    scale = alt.Scale(domain=list(series), range=known)
    return alt.Color("series:N", scale=scale, legend=alt.Legend(title=title, orient="bottom", symbolType="stroke"))


def colour_of(colours: dict[str, str], symbol: str = "stroke", columns: int = 0) -> alt.Color:
    """These colours for these series, with a legend below the figure, of so many columns if not in one row."""
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    legend = alt.Legend(title=None, orient="bottom", symbolType=symbol, symbolOpacity=1, columns=columns)
    return alt.Color("series:N", scale=scale, legend=legend)


#: A click on the legend picks out a curve, in every panel of a figure.
PICK = alt.selection_point(name="pick", fields=["series"], bind="legend")


def curves(
    data: pl.DataFrame,
    panel: str,
    x: alt.X,
    y: alt.Y,
    colours: alt.Color,
    width: int = WIDTH,
    height: int = HEIGHT,
    in_order: bool = False,
) -> alt.LayerChart:
    """A panel with the model as lines and the measured values as hollow points. Lines go from left to right, or
    through the points in the order of the data."""
    tooltip = [
        alt.Tooltip("series:N", title="series"),
        alt.Tooltip("source:N", title="source"),
        alt.Tooltip("x:Q", title=x["axis"]["title"], format=","),
        alt.Tooltip("y:Q", title=y["axis"]["title"], format=".4~g"),
    ]
    model, measured = (data.filter(panel=panel, source=source) for source in ("model", "measured"))
    line = alt.Chart(model).mark_line(strokeWidth=2)
    if in_order:
        line = line.transform_window(place="row_number()").encode(order="place:Q")
    dots = alt.Chart(model).mark_circle(size=12)  # where the model was run
    rings = alt.Chart(measured).mark_point(filled=False, size=36, strokeWidth=1.3)
    shown = alt.when(PICK).then(alt.value(1.0)).otherwise(alt.value(0.12))
    layers = [mark.encode(x=x, y=y, color=colours, tooltip=tooltip, opacity=shown) for mark in (line, dots, rings)]
    return alt.layer(*layers, title=panel_title(panel), width=width, height=height)


def panel_title(text: str) -> alt.TitleParams:
    """The title of one panel."""
    return alt.TitleParams(text, fontSize=13, fontWeight=600, offset=8)


def beside(panels: Sequence[alt.LayerChart]) -> alt.HConcatChart:
    """Panels side by side, their frames in line."""
    return alt.hconcat(*panels, spacing=64, bounds="flush")


def finish(chart: alt.TopLevelMixin, title: str, subtitle: str) -> alt.TopLevelMixin:
    """Title, what the marks mean, and the common look."""
    return (
        chart.properties(title=alt.TitleParams(title, subtitle=subtitle, anchor="start", offset=14))
        .configure(font="Inter, 'Helvetica Neue', Arial, sans-serif", background="white", padding=12)
        .configure_title(fontSize=15, subtitleFontSize=12, subtitleColor="#555", subtitlePadding=5)
        .configure_axis(gridColor="#e8e8e8", domainColor="#888", tickColor="#888", labelFontSize=11, titleFontSize=12,
                        titleFontWeight="normal", titleColor="#333")
        .configure_view(stroke=None)
        .configure_legend(labelFontSize=12, titleFontSize=12, symbolStrokeWidth=3, symbolSize=180)
    )  # fmt: skip
