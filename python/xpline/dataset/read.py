"""Reading measurements, whichever form they have."""

from __future__ import annotations

from pathlib import Path

from xpline.dataset import tables
from xpline.dataset.results import is_results, read_results
from xpline.dataset.tables import Tables


def read_tables(path: str | Path) -> Tables:
    """The tables of a folder in the layout of the published sweep, or of xpline's own results on a host."""
    path = Path(path)
    return read_results(path) if is_results(path) else tables.read_tables(path)
