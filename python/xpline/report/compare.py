"""The page of a comparison, as a folder."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import polars as pl

from xpline.compare import METRICS, Comparison
from xpline.figures import render
from xpline.figures.compare import draw
from xpline.files import make_folder, replace_file
from xpline.report.page import render_page


def write_comparison(found: Comparison, table: pl.DataFrame, out: Path) -> Path:
    """Write ``index.html``, its figures, ``ratios.csv`` and ``results.parquet`` to the folder ``out``; the page."""
    figures = draw(found)
    ratios = found.ratios()
    first, *others = found.memories
    page = render_page(
        "compare.html",
        figures,
        memories=found.memories,
        settings=[name for name in found.settings() if ratios[name].n_unique() > 1 or name == "experiment"],
        ratios=[f"{other} / {first}" for other in others],
        rows=ratios.to_dicts(),
        units={metric: unit for metric, (_, unit, _) in METRICS.items()},
        crossings=found.crossings(),
    )
    results = BytesIO()
    table.write_parquet(results)
    files = {"index.html": page, "ratios.csv": ratios.write_csv().encode(), "results.parquet": results.getvalue()}
    for figure in figures:
        files |= render(figure)
    make_folder(out)
    for name, content in files.items():
        replace_file(out / name, content)
    return out / "index.html"
