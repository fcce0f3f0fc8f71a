"""What commands print: results on standard output, everything else on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    import polars as pl

#: Standard error: progress, warnings and errors.
terminal = Console(stderr=True, highlight=False)

#: Columns of a table that people read, with the heading and the format of each.
SHOWN = {
    "platform": ("platform", "{}"),
    "overrides": ("overrides", "{}"),
    "workload": ("workload", "{}"),
    "case": ("case", "{}"),
    "part": ("part", "{}"),
    "mix": ("mix", "{}"),
    "op": ("op", "{}"),
    "pattern": ("pattern", "{}"),
    "binding": ("binding", "{}"),
    "fenced": ("fenced", "{}"),
    "size": ("size B", "{}"),
    "stride": ("stride B", "{}"),
    "clwb": ("clwb B", "{}"),
    "fence": ("fence B", "{}"),
    "buffer": ("buffer", "{}"),
    "order": ("order", "{}"),
    "lines": ("lines", "{}"),
    "region": ("region B", "{}"),
    "mask": ("mask", "{:#x}"),
    "cached": ("cached", "{}"),
    "threads": ("threads", "{}"),
    "delay": ("delay", "{}"),
    "bandwidth_mib_s": ("MiB/s", "{:.1f}"),
    "operations_s": ("ops/s", "{:.0f}"),
    "latency_mean_ns": ("mean ns", "{:.1f}"),
    "latency_std_ns": ("std ns", "{:.1f}"),
    "latency_p50_ns": ("p50 ns", "{:.1f}"),
    "latency_p99_ns": ("p99 ns", "{:.1f}"),
    "latency_p999_ns": ("p99.9 ns", "{:.1f}"),
    "latency_p9999_ns": ("p99.99 ns", "{:.1f}"),
    "latency_p99999_ns": ("p99.999 ns", "{:.1f}"),
    "latency_max_ns": ("max ns", "{:.1f}"),
    "stall_share": ("stalls", "{:.2g}"),
    "stall_interval": ("writes between", "{}"),
    "stall_ns": ("stall ns", "{:.0f}"),
    "miss_ratio": ("missed", "{:.3f}"),
    "near_miss_ratio": ("near misses", "{:.3f}"),
    "ewr": ("EWR", "{:.3f}"),
    "err": ("ERR", "{:.3f}"),
    "precision": ("±", "{:.1%}"),
    "repeats": ("repeats", "{}"),
    "outliers": ("outliers", "{}"),
    "mapping": ("mapping", "{}"),
    "settled": ("settled", "{}"),
    "bound": ("bound", "{}"),
    "bound_gain": ("gain of relief", "{:+.0%}"),
}

#: Percentiles that are shown of experiments about the tail.
_TAIL = ("latency_p999_ns", "latency_p9999_ns", "latency_p99999_ns")


def print_table(table: pl.DataFrame) -> None:
    """Print the columns of a table that hold something, for people."""
    shown = [name for name in SHOWN if name in table.columns and table[name].null_count() < table.height]
    if "stall_share" not in shown:
        shown = [name for name in shown if name not in _TAIL]
    if "settled" in shown and table["settled"].all():
        shown.remove("settled")
    drawn = Table(box=None, pad_edge=False)
    for name in shown:
        drawn.add_column(SHOWN[name][0], justify="right" if table[name].dtype.is_numeric() else "left")
    for row in table.select(shown).iter_rows(named=True):
        drawn.add_row(*("" if value is None else SHOWN[name][1].format(value) for name, value in row.items()))
    Console(width=None if terminal.is_terminal else 200, highlight=False).print(drawn)
    if "noise" in table.columns:
        _print_noise(table)


def _print_noise(table: pl.DataFrame) -> None:
    """Say which points of a host were disturbed, and what may help."""
    noisy = table.drop_nulls("noise")
    if not noisy.height:
        return
    terminal.print(f"[yellow]the host was not quiet[/] during {noisy.height} of {table.height} points:")
    for place, noise in enumerate(table["noise"]):
        if noise is not None:
            terminal.print(f"  row {place + 1}: {noise}", soft_wrap=True)
    if not table["settled"].all():
        terminal.print("stop other programs, choose CPUs with --cpus, or allow more time with --time-limit")
