"""Reading the values behind the figures of the study (``graphs/*.csv``)."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from xpline.dataset.tables import read_csv
from xpline.errors import XplineError


def read_graph(directory: str | Path | None, name: str, columns: list[str]) -> pl.DataFrame | None:
    """The graph file ``name`` with the columns asked for as floats (the first one as text if it does not read as
    numbers), or None where there is no data set or it lacks the file.

    ``columns`` are the names in the file. In 04-bandwidth_thcount_optane.csv the headers of the two write
    columns stand the wrong way round (compare data/bandwidth.csv); the caller reads them accordingly.
    """
    path = Path(directory) / "graphs" / name if directory else None
    if path is None or not path.is_file():
        return None
    frame = read_csv(path, columns).select(columns)
    numeric = frame.with_columns(pl.all().cast(pl.Float64, strict=False))
    for column in columns[1:]:
        bad = frame.filter(numeric[column].is_null())
        if bad.height:
            raise XplineError(f"{path}, column {column}: {bad[column][0]!r} is not a number")
    labels_are_text = numeric[columns[0]].null_count() > 0
    return numeric.with_columns(frame[columns[0]]) if labels_are_text else numeric


def read_scatter(directory: str | Path | None, name: str) -> list[tuple[str, float, float]]:
    """A graph file without a header line (08-*.csv): key of the row in the sweep, EWR, MiB/s; empty if missing."""
    path = Path(directory) / "graphs" / name if directory else None
    if path is None or not path.is_file():
        return []
    schema = {"__key__": pl.String, "ewr": pl.Float64, "throughput": pl.Float64}
    try:
        return pl.read_csv(path, has_header=False, schema=schema).rows()
    except pl.exceptions.PolarsError as error:
        raise XplineError(f"{path}: expected lines of key, EWR, MiB/s: {error}") from error
