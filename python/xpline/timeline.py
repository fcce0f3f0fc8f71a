"""Timelines: a sample of requests on their way through the machine, as a file that Perfetto opens.

The file is in the Chrome trace event format: https://ui.perfetto.dev and chrome://tracing read it. A core is a process,
with its requests in as many rows as were under way at once, and so is a DIMM. A row holds slices that lie side by side
or inside each other.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from xpline import files
from xpline.errors import XplineError

#: Picoseconds of the model in a microsecond of the format.
_PS = 1_000_000

#: Numbers of processes: cores from 1 on, then DIMMs.
_DIMMS = 1_000

#: What a core waited for without a request of its own.
_WAITS = "waits"

Event = Mapping[str, Any]


def check_writable(path: Path) -> None:
    """Raise if :func:`write` could not write to ``path``."""
    if not path.name.endswith((".json", ".json.gz")):
        raise XplineError(f"--timeline {path}: a timeline is a file that ends in .json.gz or .json")
    files.check_writable(path)


def write(path: Path, timeline: Sequence[Sequence[Event]], about: Mapping[str, Any], tracks: str = "core") -> None:
    """Write the timeline of a row: the events of each core, or of each of what ``tracks`` calls them.

    ``about`` is what the file says of itself, such as the platform and the point.
    """
    check_writable(path)
    content = {
        "displayTimeUnit": "ns",
        "otherData": {key: str(value) for key, value in about.items() if value is not None},
        "traceEvents": list(events(timeline, tracks)),
    }
    text = json.dumps(content, separators=(",", ":")).encode()
    files.replace_file(path, gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)


def events(timeline: Sequence[Sequence[Event]], tracks: str = "core") -> Iterator[dict[str, Any]]:
    """The trace events of a timeline.

    >>> load = {"name": "load", "address": 64, "from": 1000, "until": 4000, "behind": [],
    ...         "spans": [{"part": "mesh", "from": 1000, "until": 2000}]}
    >>> for event in events([[load]]):
    ...     print(event["name"], event.get("ts"), event.get("dur"))
    process_name None None
    thread_name None None
    load 0.001 0.003
    mesh 0.001 0.001
    """
    dimms: dict[str, list[tuple[Event, list[Event]]]] = {}
    for number, core in enumerate(timeline):
        pid = number + 1
        yield _meta("process_name", pid, 0, f"{tracks} {number}")
        waits = [event for event in core if event["address"] is None]
        requests = [event for event in core if event["address"] is not None]
        if waits:
            yield _meta("thread_name", pid, 0, _WAITS)
            yield from (_slice(wait, pid, 0) for wait in waits)
        for row, event in _rows(requests, lambda request: request):
            if row.is_new:
                yield _meta("thread_name", pid, row.number, f"requests {row.number}")
            yield _slice(event, pid, row.number)
            yield from (_slice(span, pid, row.number) for span in _outer_first(event["spans"]))
        for event in requests:
            spans = _outer_first([*event["spans"], *event["behind"]])
            for dimm in (span for span in spans if "DIMM" in span["part"]):
                inside = [span for span in spans if dimm["from"] <= span["from"] and span["until"] <= dimm["until"]]
                named = dimm | {"name": f"{event['name']} of {tracks} {number}", "address": event["address"]}
                dimms.setdefault(dimm["part"], []).append((named, [span for span in inside if span is not dimm]))
    for number, name in enumerate(sorted(dimms)):
        pid = _DIMMS + number
        yield _meta("process_name", pid, 0, name)
        for row, (whole, inside) in _rows(dimms[name], lambda pair: pair[0]):
            if row.is_new:
                yield _meta("thread_name", pid, row.number, f"requests {row.number}")
            yield _slice(whole, pid, row.number)
            # What the mesh and the core do at the same time is not the DIMM's.
            yield from (_slice(span, pid, row.number) for span in inside if span["part"] not in _OUTSIDE)


#: Parts of a way that lie outside of DIMMs.
_OUTSIDE = (
    "mesh",
    "socket link",
    "write-combining buffer",
    "wait: room for evicted lines",
    "wait: room in write pending queue",
)


class _Row:
    """One row of a process, and when it is free."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.free = 0
        self.is_new = True


def _rows(items: Iterable[Any], event_of: Any) -> Iterator[tuple[_Row, Any]]:
    """Each item with the first row that is free for its event."""
    rows: list[_Row] = []
    for item in sorted(items, key=lambda item: event_of(item)["from"]):
        event = event_of(item)
        row = next((row for row in rows if row.free <= event["from"]), None)
        if row is None:
            row = _Row(len(rows) + 1)
            rows.append(row)
        row.free = max(event["until"], event["from"] + 1)  # no row for two at one moment
        yield row, item
        row.is_new = False


def _outer_first(spans: Iterable[Event]) -> list[Event]:
    return sorted(spans, key=lambda span: (span["from"], -span["until"]))


def _slice(event: Event, pid: int, tid: int) -> dict[str, Any]:
    span = {
        "name": event.get("name") or event["part"],
        "ph": "X",
        "pid": pid,
        "tid": tid,
        "ts": event["from"] / _PS,
        "dur": (event["until"] - event["from"]) / _PS,
    }
    address = event.get("address")
    return span if address is None else span | {"args": {"address": f"{address:#x}"}}


def _meta(name: str, pid: int, tid: int, value: str) -> dict[str, Any]:
    return {"name": name, "ph": "M", "pid": pid, "tid": tid, "args": {"name": value}}
