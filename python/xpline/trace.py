"""Memory traces: replayed on a platform, converted, looked at.

A trace is a file of any format that :data:`FORMATS` names, plain or compressed with zstd.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> with TemporaryDirectory() as folder:
...     path = Path(folder, "reads.trace")
...     _ = path.write_text("".join(f"LD {64 * line:#x}\\n" for line in range(4096)))
...     table = replay(["optane-ni", "dram"], path)
>>> table.select("platform", "format", "requests").rows()
[('optane-ni', 'ramulator2', 4096), ('dram', 'ramulator2', 4096)]
>>> optane, dram = table["bandwidth_mib_s"]
>>> dram > 2 * optane
True
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from xpline import _native
from xpline.platform import Platform

if TYPE_CHECKING:
    import polars as pl

#: A platform, the name or file of one, or several.
Platforms = Platform | str | PathLike[str] | Sequence[Platform | str | PathLike[str]]

#: Called now and then with the bytes read of the file, and the bytes it has (0 where that cannot be known).
Progress = Callable[[int, int], object]

#: The formats, by name.
FORMATS = ("xpline", "ramulator2", "ramulator2-rw", "ramulator2-o3", "dramsim3", "vans", "lackey")


class ReadOptions(TypedDict, total=False):
    """How to read a trace."""

    #: The name of a format; found out by the content unless given.
    format: str | None
    #: Of address vectors (``R 0,0,1,3,17,4``): how many there are of each part, such as ``1,2,4,4,65536,128``.
    geometry: str | None
    #: The clock of the trace's times, such as ``1.2GHz``.
    clock: str | None
    #: Called with how much has been read.
    progress: Progress | None


class ReplayOptions(ReadOptions, total=False):
    """How to replay a trace."""

    #: ``core`` (through cores and caches) or ``memory`` (straight to the controllers); where it was taken unless given.
    level: str | None
    #: ``trace``, ``one``, ``round-robin:CORES[:RECORDS]`` or ``address:CORES:SIZE``.
    threads_map: str | None
    #: Requests in flight at the memory level.
    in_flight: int | None
    #: Whether requests wait for the times of the trace.
    paced: bool
    #: Whether each row holds a sample of the requests, for :func:`xpline.timeline.write`.
    timeline: bool


def replay(platform: Platforms, path: str | PathLike[str], **options: Unpack[ReplayOptions]) -> pl.DataFrame:
    """Replay a trace on one or more platforms; a row each, with the columns of ``docs/reference/replay.md``."""
    import polars as pl

    return pl.DataFrame(replay_rows(platform, path, **options), infer_schema_length=None)


def replay_rows(
    platform: Platforms, path: str | PathLike[str], **options: Unpack[ReplayOptions]
) -> list[dict[str, Any]]:
    """As :func:`replay`, as dictionaries."""
    several = [platform] if isinstance(platform, Platform | str | PathLike) else platform
    loaded = [one if isinstance(one, Platform) else Platform(one) for one in several]
    progress, text = _parted(options)
    rows = []
    for one in loaded:
        row = json.loads(_native.replay_trace(one._native, fspath(path), text, progress))
        rows.append({"platform": row.pop("platform"), "overrides": " ".join(one.overrides) or None} | row)
    return rows


def convert(
    source: str | PathLike[str],
    target: str | PathLike[str],
    to: str = "xpline",
    lossy: bool = False,
    **options: Unpack[ReadOptions],
) -> dict[str, Any]:
    """Write a trace in another format, compressed if the name ends in ``.zst``; says what was written.

    What the format cannot hold is an error, unless ``lossy``: then it is left out.
    """
    progress, text = _parted({**options, "to": to, "lossy": lossy})
    return json.loads(_native.convert_trace(fspath(source), fspath(target), text, progress))


def info(path: str | PathLike[str], **options: Unpack[ReadOptions]) -> dict[str, Any]:
    """What is in a trace: its format, records of each kind, threads, bytes, addresses, times. Checks the whole file."""
    progress, text = _parted(options)
    return json.loads(_native.trace_info(fspath(path), text, progress))


def _parted(options: Any) -> tuple[Progress | None, str]:
    """The callback, and the other options as JSON."""
    rest = dict(options)
    return rest.pop("progress", None), json.dumps(rest)
