"""The measured side of the figures: a data set, or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import polars as pl

from xpline import dataset
from xpline.cases import Case
from xpline.internals import Internals
from xpline.sweeps import KIB, Sweep


class Measurements:
    """What a data set knows about the figures; without one, or without a file of it, every answer is empty."""

    def __init__(self, directory: str | Path | None = None, internals: str | Path | None = None) -> None:
        self._directory = directory
        #: What was measured inside of a DIMM.
        self.internals = Internals(internals)
        self._medians = dataset.medians(dataset.read_tables(directory)) if directory else {}

    def graph(self, name: str, columns: list[str]) -> pl.DataFrame:
        """The columns of a graph file, empty where it is missing."""
        frame = dataset.read_graph(self._directory, name, columns)
        return pl.DataFrame(schema=dict.fromkeys(columns, pl.Float64)) if frame is None else frame

    def curve(self, name: str, x: str, y: str) -> dict[int, float]:
        """A column of a graph file against another."""
        return {int(step): value for step, value in self.graph(name, [x, y]).iter_rows()}

    def pairs(self, name: str, columns: Sequence[str]) -> dict[int, dict[str, tuple[float, float]]]:
        """A graph file whose columns come in pairs of one name, latency and bandwidth, by the number in its labels: the
        bandwidth and the latency of each name."""
        both = {column: [column, f"{column}_duplicated_0"] for column in columns}
        frame = self.graph(name, ["", *chain.from_iterable(both.values())])
        return {
            int(row[""].lstrip("M")): {
                name: (row[bandwidth], row[latency]) for name, (latency, bandwidth) in both.items()
            }
            for row in frame.iter_rows(named=True)
        }

    def sweep(self, sweep: Sweep) -> dict[int, float]:
        """Measured bandwidth in GiB/s along a sweep, at the steps that were measured."""
        found = {step: self._medians.get(case) for step, case in sweep.cases.items()}
        return {step: value.bandwidth_mib_s / KIB for step, value in found.items() if value}

    def of(self, case: Case) -> dataset.Measured | None:
        """Measured bandwidth and EWR of a case."""
        return self._medians.get(case)

    def scatter(self, name: str) -> list[tuple[str, float, float]]:
        """A graph file without a header: key, EWR and MiB/s of each point."""
        return dataset.read_scatter(self._directory, name)
