"""What others measured inside of a DIMM: report/results_csv of github.com/Systems-ShiftLab/optane_sec23_ae.

``gen_hier`` and ``ait_assoc`` are latencies of a pointer chase in cycles, against the region in bytes, the latter with
address bits kept 0; ``*_replacement_*`` shares of lines that were gone when so many were read again; ``wearlevel_*``
writes between two stalls, and their latencies in cycles; ``rw_cont_*`` latencies of a reader in cycles, one a sample.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

import polars as pl

from xpline.errors import XplineError

#: Files that tell the folder from other data sets.
_KNOWN_BY = ("gen_hier.csv", "wearlevel_write_gap_dist.csv", "rmw_replacement_random_order.csv")

#: The name of each buffer in the files' names.
_BUFFERS = {"xpbuffer": "rmw", "ait": "ait"}

#: Files of a reader's latency, by what went on beside it. The writer is the one that writes as fast as it can.
_BESIDE = {
    "nobody": "rw_cont_read.csv",
    "a reader": "rw_cont_read_read.csv",
    "a writer": "rw_cont_read_write_100.csv",
}

#: A write that takes so many times the median was stalled.
_STALL = 10


class Internals:
    """The measurements in a folder; without one, or without a file of it, every answer is empty."""

    def __init__(self, directory: str | Path | None = None) -> None:
        self._directory = Path(directory) if directory else None
        if directory and not is_internals(directory):
            raise XplineError(f"{directory}: none of {', '.join(_KNOWN_BY)} is here; name the folder that holds them")

    def chase(self) -> dict[int, float]:
        """Latency in cycles by region."""
        return self._curve("gen_hier.csv", "region_size", "average_latency")

    def masked(self, bits: str) -> dict[int, float]:
        """The same with address bits kept 0, such as "12-14"; "none" for none."""
        return self._curve("ait_assoc.csv", "size", "mask_clean" if bits == "none" else f"mask_{bits}")

    def replacement(self, buffer: str, order: str) -> dict[int, float]:
        """Share of lines that were gone, by the lines that were read."""
        return self._curve(f"{_BUFFERS[buffer]}_replacement_{order}_order.csv", "Iteration", "Rate")

    def line_stalls(self) -> tuple[float, float] | None:
        """Medians for writes of a whole line: writes from one stall to the next, and the stall in cycles."""
        gaps, stalls = (self._column(f"wearlevel_write_{name}_dist.csv") for name in ("gap", "lat"))
        return (median(gaps), median(stalls)) if gaps and stalls else None

    def piece_stalls(self) -> tuple[float, float] | None:
        """The same for writes of 64 B."""
        latencies = self._curve("wearlevel_write.csv", "Iteration", "Latency")
        if not latencies:
            return None
        longest = _STALL * median(latencies.values())
        stalls = {at: latency for at, latency in latencies.items() if latency > longest}
        gaps = [later - earlier for earlier, later in zip(stalls, list(stalls)[1:], strict=False)]
        return (median(gaps), median(stalls.values())) if gaps else None

    def contention(self) -> dict[str, float]:
        """Medians of a reader's latency in cycles, by what went on beside it: nobody, a reader, a writer."""
        latencies = {beside: self._column(name) for beside, name in _BESIDE.items()}
        return {beside: median(values) for beside, values in latencies.items() if values}

    def _curve(self, name: str, x: str, y: str) -> dict[int, float]:
        frame = self._read(name, has_header=True)
        missing = [column for column in (x, y) if frame is not None and column not in frame.columns]
        if missing:
            raise XplineError(f"{self._directory}/{name}: no column {', '.join(missing)}")
        if frame is None:
            return {}
        return dict(sorted((int(step), value) for step, value in frame.select(x, y).drop_nulls().iter_rows()))

    def _column(self, name: str) -> list[float]:
        frame = self._read(name, has_header=False)
        return [] if frame is None else frame.to_series().drop_nulls().to_list()

    def _read(self, name: str, *, has_header: bool) -> pl.DataFrame | None:
        path = self._directory / name if self._directory else None
        if path is None or not path.is_file():
            return None
        try:
            text = pl.read_csv(path, has_header=has_header, infer_schema=False)
            return text.select(pl.all().str.strip_chars().replace("", None).cast(pl.Float64))
        except pl.exceptions.PolarsError as error:
            raise XplineError(f"{path}: expected columns of numbers: {error}") from error


def is_internals(directory: str | Path) -> bool:
    """Whether a folder holds such measurements."""
    return any((Path(directory) / name).is_file() for name in _KNOWN_BY)
