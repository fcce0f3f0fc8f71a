"""Bandwidth of reads and writes mixed, near and far, with one thread and with four."""

from __future__ import annotations

import altair as alt
import polars as pl

from xpline.figures import style
from xpline.figures.figure import COLUMNS, Figure, legend_line, median_error
from xpline.figures.measured import Measurements
from xpline.loads import MIXES, SOCKET_MIXES
from xpline.sweeps import Results

_PANELS = {1: "one thread", 4: "four threads"}
_SERIES = {"optane": "near socket", "optane-remote": "other socket"}

#: The columns of the measured file.
_FILE = {("optane", 1): "Optane-1", ("optane-remote", 1): "Optane-Remote-1", ("optane", 4): "Optane-4",
         ("optane-remote", 4): "Optane-Remote-4"}  # fmt: skip


def draw(results: Results, measured: Measurements) -> Figure:
    """Two panels, a curve a socket; the mixes go from reads alone to writes alone."""
    published = {row[0]: row[1:] for row in measured.graph("17-numa.csv", ["", *_FILE.values()]).iter_rows()}
    rows = []
    for (platform, threads, mix), case in SOCKET_MIXES.items():
        place = float(list(MIXES).index(mix))
        spot = (_PANELS[threads], _SERIES[platform], place)
        rows.append((*spot, results.value(case, "bandwidth"), "model"))
        if mix in published:
            rows.append((*spot, published[mix][list(_FILE).index((platform, threads))], "measured"))
    data = pl.DataFrame(rows, schema=COLUMNS, orient="row")
    error = median_error(data)
    names = [name.removeprefix("R:W ").strip("()") for name in MIXES]
    x = alt.X(
        "x:Q",
        scale=alt.Scale(domain=[-0.3, len(MIXES) - 0.7], nice=False),
        axis=alt.Axis(
            title="lines read to lines written (R: reads alone, W: writes alone)",
            values=list(range(len(MIXES))),
            labelExpr=f"{names}[datum.value]",
            grid=False,
        ),
    )
    colours = style.colour(list(_SERIES.values()))
    y = style.quantity("bandwidth (GiB/s)")
    panels = [style.curves(data, panel, x, y, colours, width=450) for panel in _PANELS.values()]
    title = "Mixed traffic to the other socket"
    return Figure(
        "sockets",
        title,
        "Sequential reads and stores left to the caches, in the ratios shown; W is ntstores. One thread loses little "
        "over the link. Four threads lose most of their bandwidth as soon as they store: each line asked for in order "
        "to write it changes the directory, which lies in the Optane memory itself. Prefetchers "
        "are on, as a single reader shows that they were in this measurement.",
        style.finish(style.beside([panels[0].add_params(style.PICK), *panels[1:]]), title, legend_line("lines", error)),
        data,
        error,
    )
