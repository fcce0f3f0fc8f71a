"""What a figure is, how far off it is, and how it becomes a file."""

from __future__ import annotations

from dataclasses import dataclass

import altair as alt
import polars as pl
import vl_convert as vlc

#: The Vega-Lite release that pictures and pages are drawn with.
VL_VERSION = "v" + "_".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])

#: The columns of a figure's data; ``source`` is "model" or "measured".
COLUMNS = {"panel": pl.String, "series": pl.String, "x": pl.Float64, "y": pl.Float64, "source": pl.String}


#: A figure whose median error is above this is flagged.
ERROR_LIMIT = 0.10


@dataclass(frozen=True)
class Figure:
    """A chart with the data drawn in it (in long form, with ``source``) and words about it.

    ``name`` is the stem of its files; ``error`` the median of ``|model / measured - 1|`` over the points that have
    both, or None.
    """

    name: str
    title: str
    caption: str
    chart: alt.TopLevelMixin
    data: pl.DataFrame
    error: float | None

    @property
    def is_off(self) -> bool:
        """Whether the model is further from the measurements than a figure should be."""
        return self.error is not None and self.error > ERROR_LIMIT


def points(panel: str, series: str, source: str, curve: dict[int, float]) -> pl.DataFrame:
    """A curve in the columns of a figure's data."""
    rows = [(panel, series, float(x), y, source) for x, y in curve.items()]
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def median_error(data: pl.DataFrame) -> float | None:
    """The median of ``|model / measured - 1|`` over points that share panel, series and x; None without any."""
    keys = ["panel", "series", "x"]
    model, measured = (data.filter(source=source) for source in ("model", "measured"))
    both = model.join(measured, on=keys, suffix="_measured")
    return both.select((pl.col("y") / pl.col("y_measured") - 1).abs().median()).item()


def legend_line(how: str, error: float | None) -> str:
    """What the marks stand for; ``how`` tells how the model is drawn."""
    if error is None:
        return f"{how}: model"
    return f"{how}: model · hollow points: measured · median error {error:.1%}"


def render(figure: Figure) -> dict[str, bytes]:
    """The files of a figure by name: the picture as SVG and as PNG at twice the size, and its data as CSV."""
    spec = figure.chart.to_dict()
    return {
        f"{figure.name}.svg": vlc.vegalite_to_svg(spec, vl_version=VL_VERSION).encode(),
        f"{figure.name}.png": vlc.vegalite_to_png(spec, vl_version=VL_VERSION, scale=2),
        f"{figure.name}.csv": figure.data.write_csv().encode(),
    }
