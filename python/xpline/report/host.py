"""The page of a quick look, as a folder."""

from __future__ import annotations

from collections import defaultdict
from io import BytesIO
from pathlib import Path

from xpline.compare import compare
from xpline.figures import render
from xpline.figures.compare import draw
from xpline.files import make_folder, replace_file
from xpline.host.look import Look
from xpline.report.page import render_page

_TITLES = {
    "chase": (
        "Latency against region",
        "Loads that wait for each other, following a chain through every line of a region in random order. Each "
        "step up is a level that the region no longer fits in; beyond the caches, small pages and their table walks "
        "add to it. The models' loads are fenced one by one, which costs some 12 ns more.",
    ),
    "stride": (
        "Bandwidth against threads",
        "Sequential accesses of 256 B, one thread a CPU. Plain stores read their lines before they overwrite "
        "them; ntstores do not.",
    ),
    "random": (
        "Bandwidth against access size",
        "Random accesses of one thread, aligned to their size. A steep rise means that neighbouring lines come cheaper "
        "than others: prefetchers, open rows, or, on Optane, lines of 256 B in the media.",
    ),
    "loaded": (
        "Latency of a loaded memory",
        "Random loads of one thread, each timed, while all others read at random as fast as they "
        "can, and with pauses: one thread fewer than the machine has CPUs, 23 on the models.",
    ),
    "persist-latency": (
        "Latency of a persistent write",
        "Writing so many bytes in sequence to cached lines, and an sfence: with ntstores, and with stores and the "
        "flush that the CPU prefers.",
    ),
}


def write_look(look: Look, out: Path) -> Path:
    """Write ``index.html``, its figures and ``results.parquet`` to the folder ``out``; the page."""
    table = look.table
    first = look.machine.environment["flushes"][0]
    usual = table.filter(table["flush_by"].fill_null(first) == first)
    comparison = compare({"look": usual})
    figures = draw(comparison, _TITLES, look.machine.caches())
    cells: dict[str, dict[int, object]] = defaultdict(dict)
    for row in look.persists().iter_rows(named=True):
        name = row["op"] if row["flush_by"] is None else f"store + {row['flush_by']}"
        cells[name][row["size"]] = row
    page = render_page(
        "host.html",
        figures,
        cpu=look.machine.facts()["CPU"],
        latencies=look.latencies(),
        best=look.best(),
        noisy=look.noisy(),
        points=look.host.height,
        flushes=cells,
        flush_sizes=sorted({size for row in cells.values() for size in row}),
        crossings=comparison.crossings(),
        facts=look.machine.facts(),
    )
    results = BytesIO()
    table.write_parquet(results)
    files = {"index.html": page, "results.parquet": results.getvalue()}
    for figure in figures:
        files |= render(figure)
    make_folder(out)
    for name, content in files.items():
        replace_file(out / name, content)
    return out / "index.html"
