"""The figures of a reproduction: the model, and the measured points where a data set is at hand.

To add a figure, write a module with ``draw(results, measured) -> Figure`` and name it in ``_FIGURES``.
"""

from xpline.figures import (
    ewr,
    flush,
    latency,
    region,
    replacement,
    sfence,
    sizes,
    spread,
    tail,
    threads,
    xpbuffer,
)
from xpline.figures.figure import ERROR_LIMIT, Figure, render
from xpline.figures.measured import Measurements
from xpline.sweeps import Results

__all__ = ["ERROR_LIMIT", "Figure", "Measurements", "draw_all", "render"]

#: In the order of the page.
_FIGURES = (latency, tail, threads, sizes, ewr, xpbuffer, flush, sfence, spread, region, replacement)


def draw_all(results: Results, measured: Measurements) -> list[Figure]:
    """Every figure, in order."""
    return [figure.draw(results, measured) for figure in _FIGURES]
