"""The table of results: one row a point, the same columns whoever measured it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

from xpline import files
from xpline.errors import XplineError

#: What sets a row: the platform and the point. A column is null where the experiment has no such parameter.
SETTINGS: dict[str, type[pl.DataType]] = {
    "platform": pl.String,
    "overrides": pl.String,  # KEY=VALUE, separated by blanks
    "experiment": pl.String,
    "workload": pl.String,  # the benchmark of a workload file
    "case": pl.String,  # KEY=VALUE of its matrix, separated by blanks
    "part": pl.String,  # of two that run side by side
    "op": pl.String,
    "pattern": pl.String,
    "size": pl.Int64,  # bytes of an access
    "stride": pl.Int64,  # bytes from one access to the next
    "clwb": pl.Int64,  # bytes from one flush to the next
    "fence": pl.Int64,  # bytes from one fence to the next
    "binding": pl.String,
    "fenced": pl.Boolean,  # an mfence ends each access
    "lines": pl.Int64,  # XPLines of the region, or lines that are read again
    "region": pl.Int64,  # bytes that are read, or of the hot spot
    "mask": pl.Int64,  # address bits that stay 0, as their sum
    "cached": pl.Boolean,  # lines stay in the caches
    "buffer": pl.String,
    "order": pl.String,  # in which lines are read again
    "mix": pl.String,  # lines read to lines written
    "delay": pl.Int64,  # core clocks between two lines of a thread
    "threads": pl.Int64,
    "seed": pl.UInt64,
    "max_requests": pl.UInt64,
}

#: What was measured. A column is null where the experiment does not measure it, or nothing was there to measure.
MEASURES: dict[str, type[pl.DataType]] = {
    "bandwidth_mib_s": pl.Float64,
    "operations_s": pl.Float64,  # iterations of a workload
    "bytes": pl.Int64,
    "time_ns": pl.Float64,
    "latency_mean_ns": pl.Float64,
    "latency_std_ns": pl.Float64,
    "latency_p50_ns": pl.Float64,
    "latency_p90_ns": pl.Float64,
    "latency_p99_ns": pl.Float64,
    "latency_p999_ns": pl.Float64,
    "latency_p9999_ns": pl.Float64,
    "latency_p99999_ns": pl.Float64,
    "latency_max_ns": pl.Float64,
    "stall_share": pl.Float64,  # of the accesses, those that took over ten times the median
    "stall_ns": pl.Float64,  # the median of their latencies
    "stall_interval": pl.Int64,  # accesses from one to the next, in the median
    "miss_ratio": pl.Float64,  # of the lines read again, those that the buffer had given up
    "ewr": pl.Float64,  # bytes the controllers wrote over bytes the media wrote
    "err": pl.Float64,  # the same for reads
    "media_read_bytes": pl.Int64,
    "media_written_bytes": pl.Int64,
    "imc_read_bytes": pl.Int64,
    "imc_written_bytes": pl.Int64,
    "buffer_hit_ratio": pl.Float64,
    "l3_hit_ratio": pl.Float64,
    "near_miss_ratio": pl.Float64,  # of the requests, those that missed the DRAM of Memory Mode
    "requests": pl.Int64,
    "settled": pl.Boolean,  # the mean was stable to 1 % before max_requests ran out
    "source": pl.String,
}

#: Every column, in order.
COLUMNS = SETTINGS | MEASURES

#: Columns after those, in tables with a row that was measured on a host: how sure it is, and what it was measured on.
HOST: dict[str, type[pl.DataType]] = {
    "ci_low": pl.Float64,  # 95 % confidence interval of the median, MiB/s or ns
    "ci_high": pl.Float64,
    "precision": pl.Float64,  # half its width over the median
    "repeats": pl.Int64,
    "outliers": pl.Int64,  # repeats that stand out; they are in the median
    "isa": pl.String,  # avx512, avx2, sse2
    "flush_by": pl.String,  # clwb, clflushopt, clflush
    "pages": pl.String,
    "huge_share": pl.Float64,  # of the memory, what is on pages of 2 MiB or more
    "mapping": pl.String,  # anonymous, MAP_SYNC, page cache, device DAX, O_DIRECT
    "cpus": pl.String,
    "cache_misses": pl.Int64,  # of the threads, in the last cache
    "page_faults": pl.Int64,  # while measuring, as the next two
    "context_switches": pl.Int64,
    "migrations": pl.Int64,
    "timer_ns": pl.Float64,  # cost of reading the clock, which is not in the latencies
    "noise": pl.String,  # what disturbed the measurement, in words
    "environment": pl.String,  # the machine, as JSON
}

#: The file types that :func:`write` knows, by suffix.
WRITERS: dict[str, Callable[[pl.DataFrame, BytesIO], Any]] = {
    ".parquet": pl.DataFrame.write_parquet,
    ".csv": pl.DataFrame.write_csv,
    ".json": pl.DataFrame.write_json,
}


def from_rows(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """The table of rows given as dictionaries; what a row leaves out is null.

    >>> from_rows([{"platform": "dram", "ewr": 1.0}]).select("platform", "ewr", "size").row(0)
    ('dram', 1.0, None)
    """
    rows = list(rows)
    measured = any(row.get("source") == "host" for row in rows)
    return pl.DataFrame(rows, schema=COLUMNS | HOST if measured else COLUMNS, orient="row")


def check_writable(path: Path) -> None:
    """Raise if :func:`write` could not write to ``path``: call it before hours of work, not after."""
    if path.suffix not in WRITERS:
        raise XplineError(f"{path}: the suffix says how to write a table; use {', '.join(WRITERS)}")
    files.check_writable(path)


def write(table: pl.DataFrame, path: Path) -> None:
    """Write a table as its suffix says: whole, or not at all."""
    check_writable(path)
    content = BytesIO()
    WRITERS[path.suffix](table, content)
    files.replace_file(path, content.getvalue())
