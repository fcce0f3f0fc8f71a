"""``xpline replay``: a trace on a platform."""

from __future__ import annotations

import json as to_json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from xpline import trace
from xpline.cli.caveats import warn_budget, warn_volatile
from xpline.cli.estimates import note_estimates
from xpline.cli.options import Clock, Format, Geometry, Overrides, TimelineFile, parse_overrides
from xpline.cli.reading import reading
from xpline.errors import XplineError
from xpline.platform import Platform

#: What people read of a row: headings and formats, a group of lines each. Groups that hold nothing are left out.
SHOWN: list[dict[str, tuple[str, str]]] = [
    {
        "platform": ("platform", "{}"),
        "overrides": ("overrides", "{}"),
        "format": ("format", "{}"),
        "level": ("level", "{}"),
        "threads": ("threads", "{:,}"),
        "in_flight": ("in flight, at most", "{:,}"),
    },
    {
        "requests": ("requests", "{:,}"),
        "reads": ("reads", "{:,}"),
        "writes": ("writes", "{:,}"),
        "time_ns": ("time ns", "{:,.1f}"),
        "bandwidth_mib_s": ("MiB/s", "{:,.1f}"),
    },
    {
        "latency_mean_ns": ("read latency ns, mean", "{:,.1f}"),
        "latency_p50_ns": ("p50", "{:,.1f}"),
        "latency_p90_ns": ("p90", "{:,.1f}"),
        "latency_p99_ns": ("p99", "{:,.1f}"),
        "latency_p999_ns": ("p99.9", "{:,.1f}"),
        "latency_max_ns": ("max", "{:,.1f}"),
    },
    {
        "write_latency_mean_ns": ("write latency ns, mean", "{:,.1f}"),
        "write_latency_p50_ns": ("p50", "{:,.1f}"),
        "write_latency_p90_ns": ("p90", "{:,.1f}"),
        "write_latency_p99_ns": ("p99", "{:,.1f}"),
        "write_latency_p999_ns": ("p99.9", "{:,.1f}"),
        "write_latency_max_ns": ("max", "{:,.1f}"),
    },
    {
        "ewr": ("EWR", "{:.3f}"),
        "err": ("ERR", "{:.3f}"),
        "imc_read_bytes": ("controllers read B", "{:,}"),
        "imc_written_bytes": ("controllers wrote B", "{:,}"),
        "media_read_bytes": ("media read B", "{:,}"),
        "media_written_bytes": ("media wrote B", "{:,}"),
        "unwritten_bytes": ("not yet written B", "{:,}"),
    },
    {
        "l1d_hit_ratio": ("L1d hits", "{:.1%}"),
        "l2_hit_ratio": ("L2 hits", "{:.1%}"),
        "l3_hit_ratio": ("L3 hits", "{:.1%}"),
        "buffer_hit_ratio": ("buffer hits", "{:.1%}"),
        "ait_hit_ratio": ("AIT cache hits", "{:.1%}"),
    },
]


def replay(
    file: Annotated[Path, typer.Argument(help="The trace, plain or compressed with zstd.", metavar="FILE")],
    on: Annotated[str, typer.Option(help="Platforms, by name or file; separated by commas.")] = "optane",
    set: Overrides = None,
    format: Format = "auto",
    level: Annotated[
        str | None,
        typer.Option(
            help="Where records enter: core (through cores and caches) or memory (straight to the controllers).",
            show_default="where the trace was taken",
        ),
    ] = None,
    threads_map: Annotated[
        str,
        typer.Option(
            help="Which core runs a record: trace (by the trace's threads), one, round-robin:CORES[:RECORDS], "
            "address:CORES:SIZE."
        ),
    ] = "trace",
    in_flight: Annotated[
        int | None,
        typer.Option(min=1, help="Requests in flight at the memory level, all together.", show_default="32 a DIMM"),
    ] = None,
    paced: Annotated[bool, typer.Option("--paced", help="Let requests wait for the times of the trace.")] = False,
    clock: Clock = None,
    geometry: Geometry = None,
    timeline: TimelineFile = None,
    json: Annotated[bool, typer.Option("--json", help="Print the whole result as JSON.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print the whole result as CSV.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write the whole result: FILE.parquet, .csv or .json.")] = None,
) -> None:
    """Replay a memory trace, and print its time, bandwidth, latencies and write amplification."""
    if json and csv:
        raise XplineError("--json and --csv: choose one")
    if out:
        from xpline import table

        table.check_writable(out)
    overrides = parse_overrides(set)
    platforms = [Platform(name.strip(), set=overrides) for name in on.split(",")]
    warn_volatile(platforms, is_persistent=True)  # a trace of a persistent program, for all one can tell
    warn_budget(platforms)
    if timeline:
        from xpline import timeline as timelines

        timelines.check_writable(timeline)
        if len(platforms) > 1:
            raise XplineError(f"--timeline {timeline}: shows one platform; here are {len(platforms)}")
    with reading("replay") as progress:
        rows = trace.replay_rows(
            platforms,
            file,
            format=format,
            level=level,
            threads_map=threads_map,
            in_flight=in_flight,
            paced=paced,
            clock=clock,
            geometry=geometry,
            timeline=timeline is not None,
            progress=progress,
        )
    if timeline:
        row = rows[0]
        about = {key: row[key] for key in ("platform", "overrides", "trace", "format", "level", "threads", "in_flight")}
        tracks = "core" if row["level"] == "core" else "memory"
        timelines.write(timeline, row.pop("timeline"), about, tracks)
    if out:
        table.write(_frame(rows), out)
    if json:
        print(to_json.dumps(rows))
    elif csv:
        sys.stdout.write(_frame(rows).write_csv())
    else:
        _print(rows)
        _warn(rows)
    note_estimates(platforms)


def _frame(rows: list[dict[str, Any]]) -> Any:
    import polars as pl

    return pl.DataFrame(rows, infer_schema_length=None)


def _print(rows: list[dict[str, Any]]) -> None:
    """A line a number, a column a platform, and an empty line between groups."""
    groups = []
    for shown in SHOWN:
        held = {name: value for name, value in shown.items() if any(row[name] is not None for row in rows)}
        if held:
            groups.append(
                [[heading, *(_cell(row[name], shape) for row in rows)] for name, (heading, shape) in held.items()]
            )
    widths = [max(map(len, column)) for column in zip(*(line for group in groups for line in group), strict=True)]
    for number, group in enumerate(groups):
        if number:
            print()
        for heading, *values in group:
            cells = (value.rjust(width) for value, width in zip(values, widths[1:], strict=True))
            print("  ".join([heading.ljust(widths[0]), *cells]).rstrip())


def _cell(value: object, shape: str) -> str:
    return "" if value is None else shape.format(value)


def _warn(rows: list[dict[str, Any]]) -> None:
    """What the numbers should be read with."""
    row = rows[0]
    if row["wrapped"]:
        print(
            f"{row['wrapped']:,} addresses lie beyond the 128 GiB that the model's memory has, and start over from 0",
            file=sys.stderr,
        )
    if row["skipped"]:
        print(f"{row['skipped']:,} records are no requests at the memory level, and were skipped", file=sys.stderr)
