"""Results as JSON: a case with its configuration and what came out, by part where there are two."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import polars as pl

from xpline.workload.case import Case

#: Percentiles of a latency, by their columns.
_LATENCIES = {
    "avg": "latency_mean_ns",
    "std_dev": "latency_std_ns",
    "median": "latency_p50_ns",
    "percentile_90": "latency_p90_ns",
    "percentile_99": "latency_p99_ns",
    "percentile_999": "latency_p999_ns",
    "percentile_9999": "latency_p9999_ns",
    "percentile_99999": "latency_p99999_ns",
    "max": "latency_max_ns",
}


def as_json(table: pl.DataFrame, cases: Sequence[Case]) -> str:
    """The rows of :func:`xpline.workload.run` on any number of platforms, as a JSON list.

    Bandwidth is in GiB/s, latencies, where they were sampled, are in ns.
    """
    rows = iter(table.to_dicts())
    known = {(case.name, case.values or None): case for case in cases}
    found: list[dict[str, Any]] = []
    for row in rows:
        case = known[row["workload"], row["case"]]
        parts = {name: _results(next(rows)) for name in case.jobs} if case.is_parallel else {}
        found.append(
            {
                "workload": case.name,
                "type": "parallel" if case.is_parallel else "single",
                "platform": row["platform"],
                "overrides": row["overrides"],
                "matrix": dict(case.matrix),
                "config": case.config(),
                "results": _results(row) | ({"parts": parts} if parts else {}),
            }
        )
    return json.dumps(found, indent=2)


def _results(row: dict[str, Any]) -> dict[str, Any]:
    latencies = {name: row[column] for name, column in _LATENCIES.items() if row[column] is not None}
    results: dict[str, Any] = {
        "bandwidth_gib_s": row["bandwidth_mib_s"] / 1024,
        "operations_s": row["operations_s"],
        "bytes": row["bytes"],
        "time_ns": row["time_ns"],
    }
    results |= {key: row[key] for key in ("ewr", "err", "settled") if row[key] is not None}
    return results | ({"latency_ns": latencies} if latencies else {})
