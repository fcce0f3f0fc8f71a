"""The error over a whole data set: modelled against measured, how it is distributed, and where it leans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import altair as alt
import polars as pl

from xpline.figures import style
from xpline.figures.figure import Figure
from xpline.score import EWR_LIMIT, Score, classes

#: The memories of the data set, in the order of the panels.
MEMORIES = ("DRAM", "Optane, one DIMM", "Optane, six DIMMs")

#: The operations of the data set as figures name them; those of the flush table are clwb at intervals.
_OPS = {"Load": "load", "NTStore": "ntstore", "Store": "store", "Store+Flush": "store+clwb"}

_COLOURS = ("#555555", "#CC79A7", "#009E73", "#0072B2")

#: What the grey bands of the scatters hold: a share of the bandwidth, and a difference in EWR.
_BAND, _EWR_BAND = 0.2, 0.1

_SIDE = 300


def draw_errors(score: Score) -> list[Figure]:
    """The figures of an account of the error, in the order of the page: those that have a point."""
    points = _readable(score.points)
    with_ewr = points.filter(pl.col("ewr_model").is_not_null())
    figures = [(_bandwidth, points), (_ewr, with_ewr), (_distribution, points), (_leaning, points)]
    return [draw(shown) for draw, shown in figures if shown.height]


def _readable(points: pl.DataFrame) -> pl.DataFrame:
    """The predicted points with the words of the figures."""
    memory = (
        pl.when(pl.col("media") == "ldram").then(pl.lit(MEMORIES[0]))
        .when(pl.col("interleaving") == "0").then(pl.lit(MEMORIES[1])).otherwise(pl.lit(MEMORIES[2]))
    )  # fmt: skip
    return points.filter(pl.col("predicted").is_not_null()).select(
        memory=memory,
        op=pl.col("operation").replace_strict(_OPS, default="store+clwb"),
        task="task_type",
        what=_what(points.columns),
        threads="threads",
        size=pl.col("access_size").cast(pl.Int64),
        measured=pl.col("measured").round(1),
        model=pl.col("predicted").round(1),
        error=pl.col("error").round(4),
        bias=pl.col("bias").round(4),
        ewr_measured=pl.col("ewr_measured").round(4),
        ewr_model=pl.when(pl.col("ewr_measured").is_not_null()).then(pl.col("predicted_ewr").round(4)),
        ewr_error=pl.col("ewr_error").round(4),
    )


def _what(columns: Sequence[str]) -> pl.Expr:
    """The configuration of a point in words."""
    parts = [pl.format("{} B", pl.col("access_size"))]
    for column, text in {"clwb_size": "clwb {}", "fence_size": "fence {}", "alloc_type": "binding {}"}.items():
        if column in columns:
            parts.append(pl.when(pl.col(column).is_not_null()).then(pl.format(text, pl.col(column))))
    if "stride_size" in columns:
        parts.append(pl.when(pl.col("task_type") == "StrideBW").then(pl.format("stride {}", pl.col("stride_size"))))
    several = pl.when(pl.col("threads") > 1).then(pl.lit("s")).otherwise(pl.lit(""))
    parts.append(pl.format("{} thread{}", pl.col("threads"), several))
    watts = pl.format("{} W", pl.col("avgpower").cast(pl.Float64) / 1000)
    parts.append(pl.when(pl.col("media") == "lpmem").then(watts))
    return pl.concat_str(parts, separator=", ", ignore_nulls=True)


def _bandwidth(points: pl.DataFrame) -> Figure:
    data = points.select(
        "memory", "op", "task", "what", "error", x=pl.col("measured") / 1024, y=pl.col("model") / 1024
    ).with_columns(pl.col("x", "y").round(5))
    chart = _beside(data, "bandwidth", _logarithmic)
    title = "Modelled against measured bandwidth"
    within = data.filter(pl.col("error") <= _BAND).height / data.height
    return Figure(
        "error-bandwidth",
        title,
        "A point a configuration. On the line the model is right; in the grey band it is within 20 % of the "
        "measurement, above the line it is too fast. Remote memory, which is not modelled, is not shown.",
        style.finish(chart, title, f"{data.height} configurations, {within:.0%} of them within 20 %"),
        data,
        data["error"].median(),
    )


def _ewr(points: pl.DataFrame) -> Figure:
    data = points.select("memory", "op", "task", "what", error="ewr_error", x="ewr_measured", y="ewr_model")
    axes = _Axes([0.0, EWR_LIMIT + 0.05], [0.0, max(EWR_LIMIT + 0.05, data["y"].max())], log=False)
    chart = _beside(data, "EWR", lambda _: axes)
    title = "Modelled against measured write amplification"
    within = data.filter(pl.col("error") <= _EWR_BAND).height / data.height
    return Figure(
        "error-ewr",
        title,
        "The effective write ratio (EWR): bytes that the controllers wrote over bytes that the media wrote. The grey "
        "band is 0.1 to either side.",
        style.finish(chart, title, f"{data.height} configurations, {within:.0%} of them within 0.1"),
        data,
        None,
    )


def _beside(data: pl.DataFrame, quantity: str, axes: Callable[[pl.DataFrame], _Axes]) -> alt.HConcatChart:
    """A scatter for each memory that has a point, with what picks out operations and experiments."""
    parts = [(memory, part) for memory in MEMORIES if (part := data.filter(memory=memory)).height]
    scatters = [_scatter(part, memory, quantity, axes(part)) for memory, part in parts]
    # The legend belongs to the layer that has colours: what it picks must, too.
    scatters[0].layer[-1] = scatters[0].layer[-1].add_params(style.PICK, _TASK)
    return style.beside(scatters)


_TASK = alt.selection_point(
    name="task",
    fields=["task"],
    bind=alt.binding_select(
        options=[None, "RandBW", "StrideBW", "ClwbFence", "AlignBW"],
        labels=["all", "random", "strided", "flush and fence intervals", "bound to DIMMs"],
        name="experiments: ",
    ),
)


def _scatter(data: pl.DataFrame, panel: str, quantity: str, axes: _Axes) -> alt.LayerChart:
    """One panel: a diagonal with its band, and a dot a configuration."""
    x = alt.X("x:Q", scale=axes.scale(axes.x), axis=axes.ticks(), title=f"{quantity} measured{axes.unit}")
    y = alt.Y("y:Q", scale=axes.scale(axes.y), axis=axes.ticks(), title=f"{quantity} modelled{axes.unit}")
    ideal = alt.Data(values=[{"x": at, "y": at, "low": low, "high": high} for at, low, high in axes.band()])
    low = alt.Y("low:Q", scale=y["scale"], axis=y["axis"], title=y["title"])
    shade = alt.Chart(ideal).mark_area(color="#d4d4d4", opacity=0.6, clip=True).encode(x=x, y=low, y2="high:Q")
    line = alt.Chart(ideal).mark_line(color="#777", strokeWidth=1, clip=True).encode(x=x, y=y)
    shown = alt.when(style.PICK & _TASK).then(alt.value(0.6)).otherwise(alt.value(0.02))
    dots = (
        # As values, and not as a frame: altair takes no more than 5000 rows of one.
        alt.Chart(alt.Data(values=data.rename({"op": "series"}).drop("memory").to_dicts()))
        .mark_circle(size=13, clip=True, aria=False)
        .encode(
            x=x,
            y=y,
            color=style.colour_of(style.COLOURS, symbol="circle"),
            opacity=shown,
            tooltip=[
                alt.Tooltip("series:N", title="operation"),
                alt.Tooltip("task:N", title="experiment"),
                alt.Tooltip("what:N", title="configuration"),
                alt.Tooltip("x:Q", title="measured", format=".3~g"),
                alt.Tooltip("y:Q", title="modelled", format=".3~g"),
                alt.Tooltip("error:Q", title="error", format=axes.error),
            ],
        )
    )
    return alt.layer(shade, line, dots, title=style.panel_title(panel), width=_SIDE, height=_SIDE)


@dataclass(frozen=True)
class _Axes:
    """The two axes of a scatter, their ends, and the band about the diagonal."""

    x: list[float]
    y: list[float]
    log: bool
    unit: str = ""
    error: str = ".3f"

    def scale(self, domain: list[float]) -> alt.Scale:
        return alt.Scale(type="log" if self.log else "linear", domain=domain, nice=False)

    def ticks(self) -> alt.Axis:
        if not self.log:
            return alt.Axis(tickCount=6)
        values = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000)
        return alt.Axis(values=[v for v in values if self.x[0] <= v <= self.x[1]], format="~g")

    def band(self) -> list[tuple[float, float, float]]:
        ends = [self.x[0], max(self.x[1], self.y[1])]
        if self.log:
            return [(at, at * (1 - _BAND), at * (1 + _BAND)) for at in ends]
        return [(at, at - _EWR_BAND, at + _EWR_BAND) for at in ends]


def _logarithmic(data: pl.DataFrame) -> _Axes:
    """Axes alike, with room around the points."""
    values = [value for column in ("x", "y") for value in data[column] if value > 0] or [1.0]
    domain = [min(values) / 1.3, max(values) * 1.3]
    return _Axes(domain, domain, log=True, unit=" (GiB/s)", error=".1%")


def _distribution(points: pl.DataFrame) -> Figure:
    everything = pl.concat([points, points.with_columns(memory=pl.lit("all"), op=pl.lit("all"))])
    ewr = everything.filter(pl.col("ewr_error").is_not_null())
    by_memory, by_op, of_ewr = "bandwidth, by memory", "bandwidth, by operation", "EWR, by memory"
    data = pl.concat([
        _cumulative(everything, by_memory, "memory", "error"),
        _cumulative(everything, by_op, "op", "error"),
        _cumulative(ewr, of_ewr, "memory", "ewr_error"),
    ])  # fmt: skip
    memories = style.colour_of(dict(zip(("all", *MEMORIES), _COLOURS, strict=True)), columns=2)
    operations = style.colour_of({"all": _COLOURS[0], **style.COLOURS}, columns=3)
    panels = [
        _curves(data, by_memory, memories, [0.001, 3.0], "error", ".1%"),
        _curves(data, by_op, operations, [0.001, 3.0], "error", ".1%"),
        _curves(data, of_ewr, memories, [0.001, 1.0], "error of EWR", ".3f"),
    ]
    title = "Distribution of the error"
    return Figure(
        "error-distribution",
        title,
        "The share of the configurations whose error is at most so large. The dashed lines are the median and the 90th "
        "percentile.",
        style.finish(
            alt.hconcat(*panels, spacing=70, bounds="flush").resolve_scale(color="independent"),
            title,
            "cumulative, logarithmic in the error",
        ),
        data,
        None,
    )


def _cumulative(points: pl.DataFrame, panel: str, column: str, error: str) -> pl.DataFrame:
    """For each value of a column, the error at every half percent of its points."""
    frames = []
    for (series,), group in points.sort(error).partition_by(column, as_dict=True, maintain_order=True).items():
        shares = [step / 200 for step in range(201)]
        errors = [group[error].quantile(share, "linear") for share in shares]
        frames.append(pl.DataFrame({"panel": panel, "series": series, "error": errors, "share": shares}))
    return pl.concat(frames) if frames else pl.DataFrame(schema=dict.fromkeys(("panel", "series", "error", "share")))


def _curves(
    data: pl.DataFrame, panel: str, colours: alt.Color, domain: list[float], title: str, shape: str
) -> alt.LayerChart:
    """One panel: the share of the configurations against the error."""
    values = [value for value in (0.001, 0.01, 0.1, 1.0) if domain[0] <= value <= domain[1]]
    axis = alt.Axis(title=title, values=values, format="~%" if shape.endswith("%") else "~g")
    x = alt.X("error:Q", scale=alt.Scale(type="log", domain=domain, clamp=True, nice=False), axis=axis)
    y = alt.Y("share:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(title="configurations", format="~%"))
    tooltip = [
        alt.Tooltip("series:N", title="of"),
        alt.Tooltip("share:Q", title="configurations", format=".1%"),
        alt.Tooltip("error:Q", title="error at most", format=shape),
    ]
    lines = alt.Chart(data.filter(panel=panel)).mark_line(strokeWidth=2).encode(
        x=x, y=y, color=colours, tooltip=tooltip
    )  # fmt: skip
    marks = alt.Chart(alt.Data(values=[{"share": 0.5}, {"share": 0.9}])).mark_rule(
        strokeDash=[4, 3], color="#888"
    ).encode(y=y)  # fmt: skip
    return alt.layer(marks, lines, title=style.panel_title(panel), width=_SIDE - 20, height=_SIDE - 60)


_SIZES = ("64 B", "128 B", "256 B", "512 B", "1 KiB", "2 KiB", "4 KiB", "8 KiB", "16 KiB", "32 KiB", "64 KiB+")
_THREADS = {"1": 1, "2": 2, "3–4": 4, "5–8": 8, "9–16": 16, "17–24": 24}


def _leaning(points: pl.DataFrame) -> Figure:
    cells = (
        points.with_columns(
            threads=classes(pl.col("threads"), [end + 1 for end in _THREADS.values()][:-1], list(_THREADS)),
            size=classes(pl.col("size"), [64 << step for step in range(1, len(_SIZES))], list(_SIZES)),
        )
        .group_by("op", "memory", "size", "threads")
        .agg(pl.col("bias").median(), pl.col("error").median(), n=pl.len())
        .sort("op", "memory", "size", "threads")
    )
    last = list(style.COLOURS)[-1]
    rows = [
        style.beside([_cells(cells.filter(op=op, memory=memory), f"{op}, {memory}", op == last) for memory in MEMORIES])
        for op in style.COLOURS
    ]
    title = "Where the model leans"
    return Figure(
        "error-bias",
        title,
        "The median of modelled / measured - 1 by access size and threads, over all strides, intervals, bindings and "
        "power budgets: orange where the model is too fast, blue where it is too slow. Cells without a "
        "configuration are empty.",
        style.finish(alt.vconcat(*rows, spacing=14), title, "colours end at 50 %"),
        cells,
        None,
    )


def _cells(data: pl.DataFrame, panel: str, labelled: bool) -> alt.Chart:
    """One panel: a cell for each class of sizes and threads; ``labelled`` is whether the sizes stand below it."""
    colours = alt.Scale(domain=[-0.5, 0, 0.5], range=["#0072B2", "#f7f7f7", "#D55E00"], clamp=True)
    legend = alt.Legend(title="too slow · too fast", format="+.0%", orient="bottom", gradientLength=240, tickCount=5)
    return (
        alt.Chart(data, title=style.panel_title(panel), width=_SIDE, height=120)
        .mark_rect(stroke="white", strokeWidth=1)
        .encode(
            x=alt.X("size:N", sort=list(_SIZES), scale=alt.Scale(domain=list(_SIZES)),
                    axis=alt.Axis(title="access size, from", labelAngle=-45)
                    if labelled else alt.Axis(title=None, labels=False, ticks=False)),
            y=alt.Y("threads:N", sort=list(_THREADS), scale=alt.Scale(domain=list(_THREADS)),
                    axis=alt.Axis(title="threads")),
            color=alt.Color("bias:Q", scale=colours, legend=legend),
            tooltip=[
                alt.Tooltip("size:N", title="access size"),
                alt.Tooltip("threads:N"),
                alt.Tooltip("bias:Q", title="median modelled / measured - 1", format="+.1%"),
                alt.Tooltip("error:Q", title="median error", format=".1%"),
                alt.Tooltip("n:Q", title="configurations"),
            ],
        )
    )  # fmt: skip
