"""Small data sets in the layout of the sweep: where the real one is, and how to write a made-up one."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import polars as pl
import pytest

from xpline import bench

#: The columns of the published files, in their order (those that nothing reads are left out).
COLUMNS = {
    "bandwidth": "__key__ access_size avgpower date err ewr interleaving local machine media operation stride_size "
    "task_type threads throughput version",
    "flush": "__key__ access_size avgpower clwb_size date ewr fence fence_size interleaving local machine media op "
    "task_type threads throughput version",
    "alignment": "__key__ access_size alloc_type avgpower date ewr local machine media operation task_type threads "
    "throughput version",
}

#: A value for each column that a test does not set.
USUAL = {
    "access_size": 256, "avgpower": 15000, "date": "2019-04-01", "err": "", "ewr": "", "interleaving": 0, "local": 1,
    "machine": "AEP1", "media": "lpmem", "operation": "NTStore", "stride_size": 0, "threads": 1, "throughput": 1000.0,
    "clwb_size": 64, "fence": 0, "fence_size": 256, "op": 0, "alloc_type": 0, "version": "",
}  # fmt: skip
TASK = {"bandwidth": "RandBW", "flush": "ClwbFence", "alignment": "AlignBW"}


def _write(directory: Path, file: str, rows: list[dict], columns: list[str] | None = None) -> Path:
    """Write ``data/FILE.csv`` with the second line of types that the original has; returns the directory."""
    columns = columns or COLUMNS[file].split()
    path = directory / "data" / f"{file}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as out:
        writer = csv.DictWriter(out, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerow(dict.fromkeys(columns, "string"))
        for i, row in enumerate(rows):
            writer.writerow(USUAL | {"__key__": f"{file}-{i}", "task_type": TASK[file]} | row)
    return directory


def _shared(path: str) -> Path:
    """A file of the material beside the project (XPLINE_SHARED, or ../shared), or skip the test without it."""
    root = Path(os.environ.get("XPLINE_SHARED", Path(__file__).parents[3] / "shared"))
    if not (root / path).exists():
        pytest.skip(f"{path} is not beside the project (set XPLINE_SHARED to the folder that has it)")
    return root / path


@pytest.fixture(scope="session")
def write_dataset():
    """The function that writes a made-up table of a data set (see :func:`_write`)."""
    return _write


@pytest.fixture(scope="session")
def shared():
    """The function that finds material beside the project (see :func:`_shared`)."""
    return _shared


class FakeModel:
    """Stands in for ``xpline.bench.run``: a row from the point alone, a count of what ran, a stop on demand."""

    def __init__(self):
        self.ran = []
        self.stop_after = None

    def run(self, platform, points, jobs=None, progress=None):
        rows = []
        for index, point in enumerate(points):
            if self.stop_after is not None and len(self.ran) >= self.stop_after:
                raise KeyboardInterrupt
            row = self.row(platform, point)
            self.ran.append((platform.name, point))
            rows.append(row)
            if progress:
                progress(index, row)
        return pl.DataFrame(rows)

    def row(self, platform, point):
        reads = point.get("op") == "load"
        bandwidth = 100.0 * point.get("threads", 1) + 1 / 3
        return {"bandwidth_mib_s": bandwidth, "ewr": None if reads else 0.5, "imc_written_bytes": None if reads else 64}


@pytest.fixture
def model(monkeypatch):
    """A fake model in place of the simulator: quick, and it remembers what it ran."""
    fake = FakeModel()
    monkeypatch.setattr(bench, "run", fake.run)
    return fake


class FakeMachine(FakeModel):
    """A fake model with every column that figures and claims read, smooth in the numbers of the point."""

    def row(self, platform, point):
        threads, size = point.get("threads", 1), point.get("size", 256)
        return {
            "platform": platform.name,
            **point,
            "bandwidth_mib_s": 1000.0 * threads * size / (size + 200),
            "ewr": 0.9 if point.get("lines", 1) <= 64 else 0.5,
            "imc_written_bytes": 64,
            "latency_mean_ns": 60.0 + size / 8,
            "latency_std_ns": 5.0,
            **dict.fromkeys(("latency_p999_ns", "latency_p9999_ns", "latency_p99999_ns"), 100.0),
            "latency_max_ns": 40_000.0,
            "stall_share": 1 / point.get("region", 1),
            "stall_ns": 40_000.0,
            "stall_interval": 9000,
            "miss_ratio": max(0.0, 1 - 64 / point.get("lines", 1)),
            "near_miss_ratio": 0.2,
        }


@pytest.fixture(scope="module")
def machine():
    """A fake model that knows all columns, in place of the simulator for a whole module of tests."""
    fake = FakeMachine()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench, "run", fake.run)
        yield fake
