"""Latency against delivered bandwidth: Optane and what stood in for it, and Optane under reads and writes."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

import altair as alt
import polars as pl

from xpline.bench.loads import DELAYS
from xpline.cases import Case
from xpline.figures import style
from xpline.figures.figure import COLUMNS, Figure, legend_line
from xpline.figures.measured import Measurements
from xpline.loads import FOOTPRINTS, LOADED, NEAR_LOADED, PERCENTS, STAND_INS, WRITE_LOADED, WRITERS
from xpline.sweeps import Results

_NAMES = {"optane": "Optane", "dram": "DRAM", "dram-remote": "DRAM of the other socket", "pmep": "PMEP"}

#: The columns of the measured file come in pairs of a name: latency, and bandwidth.
_FILE, _COLUMNS = "06-bandwidth_seqwrite_latency.csv", ("DRAM", "DRAM-Remote", "Optane", "PMEP")
_COLUMN = {"dram": "DRAM", "dram-remote": "DRAM-Remote", "optane": "Optane", "pmep": "PMEP"}

Spot = tuple[float, float]


def spot(results: Results, case: Case) -> Spot:
    """Bandwidth and latency of a case."""
    return results.value(case, "bandwidth"), results.value(case, "latency_mean_ns")


def _curve(panel: str, series: str, source: str, spots: Iterable[Spot]) -> pl.DataFrame:
    rows = [(panel, series, bandwidth, latency, source) for bandwidth, latency in spots]
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def _measured(measured: Measurements) -> dict[tuple[str, int], Spot]:
    """Published bandwidth and latency by (platform, delay)."""
    found = {}
    for delay, pairs in measured.pairs(_FILE, _COLUMNS).items():
        found |= {(name, delay): pairs[column] for name, column in _COLUMN.items()}
    return found


def _off(of: dict[tuple[str, int], Spot], platform: str, by: dict[tuple[str, int], Spot], other: str) -> float | None:
    """The median of how far bandwidths and latencies of one platform are from those of another, at the same pauses."""
    errors = [
        abs(here / there - 1)
        for delay in DELAYS
        if (platform, delay) in of and (other, delay) in by
        for here, there in zip(of[platform, delay], by[other, delay], strict=True)
    ]
    return median(errors) if errors else None


def draw(results: Results, measured: Measurements) -> Figure:
    """Optane and its stand-ins on the same axes."""
    model = {key: spot(results, case) for key, case in WRITE_LOADED.items()}
    published = _measured(measured)
    data = pl.concat(
        _curve("", name, source, [spots[platform, delay] for delay in DELAYS if (platform, delay) in spots])
        for platform, name in _NAMES.items()
        for source, spots in (("model", model), ("measured", published))
    )
    errors = [_off(model, platform, published, platform) for platform in _NAMES]
    error = max((value for value in errors if value is not None), default=None)
    distances = ", ".join(f"{_NAMES[one]} {_off(model, one, model, 'optane'):.0%}" for one in STAND_INS)
    title = "What stood in for Optane: latency beside writes"
    y = style.magnitude("latency of a load (ns)", 60, 100, 200, 500, 1000, 2000, 5000)
    chart = _panel(data, "", y, list(_NAMES.values()), style.SINGLE[0], style.SINGLE[1] + 60)
    return Figure(
        "stand-ins",
        title,
        f"Loads in sequence, each waiting for the one before, while {WRITERS['optane']} threads write with ntstores "
        "and pause for 0 to 80,000 clocks after each line. No stand-in has both the latency and the bandwidth of "
        f"Optane; how far each is from it, in the median over pauses of both: {distances}. The emulator is a machine "
        f"of its own, with {WRITERS['pmep']} threads that write.",
        style.finish(chart.add_params(style.PICK), title, legend_line("lines", error)),
        data,
        error,
    )


def draw_mixes(results: Results, measured: Measurements) -> Figure:
    """Optane at its largest power budget, under reads and under reads and writes."""
    panels = {"sequential": "sequential", "random": "random 64 B"}
    names = {"1:0": "reads", "2:1": "two reads a write"}
    data = pl.concat(
        _curve(panel, name, "model", [spot(results, LOADED[key]) for key in LOADED if key[:2] == (pattern, mix)])
        for pattern, panel in panels.items()
        for mix, name in names.items()
    )
    title = "Latency of Optane under load"
    y = style.magnitude("latency of a load (ns)", 100, 200, 500, 1000, 2000)
    charts = [_panel(data, panel, y, list(names.values()), 450) for panel in panels.values()]
    return Figure(
        "loaded-latency",
        title,
        "As 18 threads shorten their pauses, at a power budget of 18 W. In sequence the memory serves whole XPLines; "
        "at random it reads, and writes, four times what is asked for, and its latency rises at a quarter of the "
        "bandwidth. Published as a chart without numbers (Hot Chips 31, 2019).",
        style.finish(style.beside([charts[0].add_params(style.PICK), *charts[1:]]), title, legend_line("lines", None)),
        data,
        None,
    )


def draw_near(results: Results, measured: Measurements) -> Figure:
    """Memory Mode over footprints."""
    panels = {("1:0", "random"): "reads", ("2:1", "random"): "two reads a write"}
    names = {percent: f"about {percent} %" for percent in PERCENTS}
    data = pl.concat(
        _curve(panel, names[percent], "model", [
            spot(results, NEAR_LOADED[key]) for key in NEAR_LOADED if key[:3] == (pages, mix, percent)
        ])
        for (mix, pages), panel in panels.items()
        for percent in PERCENTS
    )  # fmt: skip
    title = "Memory Mode: latency under load, by misses"
    y = style.magnitude("latency of a load (ns)", 60, 100, 200, 500, 1000)
    charts = [_panel(data, panel, y, list(names.values()), 450) for panel in panels.values()]
    sizes = "; ".join(
        f"{name} " + ", ".join(f"{FOOTPRINTS[mix, percent]:g}" for percent in PERCENTS)
        for (mix, _), name in panels.items()
    )
    return Figure(
        "memory-mode",
        title,
        f"Buffers a thread in GB that a source gives for so many misses in 6 x 16 GB of DRAM ({sizes}), all of it "
        "scaled down, with pages on random frames. Hits come at the speed of "
        "DRAM; with misses, the bandwidth soon is what the Optane behind it can give. Neither threads nor the "
        "placement of pages are published: with contiguous pages there are fewer misses.",
        style.finish(style.beside([charts[0].add_params(style.PICK), *charts[1:]]), title, legend_line("lines", None)),
        data,
        None,
    )


def _panel(
    data: pl.DataFrame, panel: str, y: alt.Y, names: list[str], width: int, height: int = style.HEIGHT
) -> alt.LayerChart:
    """A panel whose lines follow the pauses, not the bandwidth."""
    most = data.filter(panel=panel)["x"].max()
    last = 10 * (int(float(str(most)) / 10) + 1)
    x = alt.X(
        "x:Q", scale=alt.Scale(domain=[0, last], nice=False), axis=alt.Axis(title="bandwidth (GiB/s)", tickCount=6)
    )
    return style.curves(data, panel, x, y, style.colour(names), width=width, height=height, in_order=True)
