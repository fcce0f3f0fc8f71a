"""Experiments on a modelled memory, each a function that returns a polars table.

Every parameter takes one value, a list, or text that lists values (``"64..4096"`` doubles); every combination runs.
So does the platform: a name, a :class:`xpline.Platform`, or a list of them.

>>> from xpline import bench
>>> table = bench.random("optane-ni", op="ntstore", size=[64, 256], threads=1)
>>> table.select("size", "threads").rows()
[(64, 1), (256, 1)]
>>> quarter, whole = table["ewr"]  # bytes the controllers wrote over bytes the media wrote
>>> quarter < 0.3 < 0.9 < whole
True
"""

from xpline.bench.experiments import align, flush, latency, persist_latency, random, stride, xpbuffer
from xpline.bench.internals import chase, replacement, tail, wear
from xpline.bench.loads import loaded, mix
from xpline.bench.points import Point, points
from xpline.bench.run import Platforms, run

__all__ = [
    "Platforms",
    "Point",
    "align",
    "chase",
    "flush",
    "latency",
    "loaded",
    "mix",
    "persist_latency",
    "points",
    "random",
    "replacement",
    "run",
    "stride",
    "tail",
    "wear",
    "xpbuffer",
]
