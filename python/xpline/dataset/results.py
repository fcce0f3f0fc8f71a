"""A sweep of xpline's own on a host, as a data set: what a fit and a validation take in place of the published one."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from xpline import results
from xpline.dataset.plan import OPERATIONS
from xpline.dataset.tables import CONFIGURATION, Tables
from xpline.errors import XplineError

#: The operations in the words of the data set.
_NAMES = {ours: theirs for theirs, ours in OPERATIONS.items()}

#: Mappings that are persistent memory; everything else stands for DRAM.
_PERSISTENT = ("MAP_SYNC", "device DAX")


def is_results(path: Path) -> bool:
    """Whether a path names a file of results, or a folder of them, and not one in the layout of the published sweep."""
    if path.is_dir():
        return any(path.glob("*.parquet"))
    return path.suffix in (".parquet", ".csv", ".json")


def read_results(path: Path) -> Tables:
    """The rows of `random`, `stride` and `flush` that were measured on a host, in the columns of the published sweep.

    Of a folder, all that is in its ``.parquet`` files: a sweep in parts, or the same one several times, whose
    repeats then count with their median. Rows of models, and of other experiments, are passed over. A memory counts
    as DRAM unless it was mapped from a DAX file system or device.
    """
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    rows = [row for file in files for row in _measured(file)]
    found = {"bandwidth": [_bandwidth, []], "flush": [_flush, []]}
    for row in rows:
        name = {"random": "bandwidth", "stride": "bandwidth", "flush": "flush"}.get(row["experiment"])
        if name is not None and not (row["experiment"] == "stride" and row["fence"]):
            make, made = found[name]
            common = {"__key__": f"row {len(made) + 1}", "throughput": f"{row['bandwidth_mib_s']:.6g}"}
            made.append(common | _memory(row) | make(row))
    tables = {name: _table(name, made) for name, (_, made) in found.items() if made}
    if not tables:
        raise XplineError(
            f"{path}: no row of random, stride or flush that was measured on a host; "
            "make some with xpline bench random --on host --out FILE.parquet"
        )
    return tables


def _measured(path: Path) -> list[dict[str, object]]:
    """Rows that were measured on a host, and have a bandwidth."""
    frame = results.read(path)
    if "source" not in frame.columns:
        raise XplineError(f"{path}: column source is missing; it tells what was measured from what was modelled")
    return [row for row in frame.iter_rows(named=True) if row["source"] == "host" and row["bandwidth_mib_s"]]


def _memory(row: dict[str, object]) -> dict[str, str]:
    persistent = row.get("mapping") in _PERSISTENT
    return {
        "media": "lpmem" if persistent else "ldram",
        "interleaving": "1",
        "local": "1",
        "avgpower": "0",
        "threads": str(row["threads"]),
        "access_size": str(row["size"]),
    }


def _bandwidth(row: dict[str, object]) -> dict[str, str]:
    task = "RandBW" if row["experiment"] == "random" else "StrideBW"
    return {"task_type": task, "operation": _NAMES[str(row["op"])], "stride_size": str(row["stride"] or 0)}


def _flush(row: dict[str, object]) -> dict[str, str]:
    pattern = "1" if row["pattern"] == "random" else "0"
    return {"task_type": "ClwbFence", "op": pattern, "clwb_size": str(row["clwb"]), "fence_size": str(row["fence"])}


def _table(name: str, rows: list[dict[str, str]]) -> pl.DataFrame:
    columns = ["__key__", "throughput", *CONFIGURATION[name], "date", "machine", "ewr", "version"]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")
    return frame.with_row_index("line", offset=2)
