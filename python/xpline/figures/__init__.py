"""The figures of a reproduction: the model, and the measured points where a data set is at hand.

To add a figure, write a module with ``draw(results, measured) -> Figure`` and name that in ``_FIGURES``.
"""

from xpline.figures import (
    contention,
    ewr,
    flush,
    latency,
    loaded,
    region,
    replacement,
    sfence,
    sizes,
    sockets,
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
_FIGURES = (
    latency.draw, tail.draw, threads.draw, sizes.draw, loaded.draw, ewr.draw, xpbuffer.draw, flush.draw, sfence.draw,
    spread.draw, sockets.draw, loaded.draw_mixes, loaded.draw_near, region.draw, replacement.draw,
    contention.draw,
)  # fmt: skip


def draw_all(results: Results, measured: Measurements) -> list[Figure]:
    """Every figure, in order."""
    return [draw(results, measured) for draw in _FIGURES]
