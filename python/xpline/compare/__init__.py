"""Memories side by side: the same points on several of them, their ratios, and where one overtakes another.

>>> import xpline
>>> from xpline.compare import compare
>>> results = xpline.bench.random(["dram", "optane"], op="load", size=[64, 256], max_requests=50_000)
>>> found = compare({"results": results})
>>> found.memories
['dram', 'optane']
>>> found.ratios().select("size", "dram", "optane", "optane / dram").row(0)
(64, ..., ..., ...)
"""

from xpline.compare.comparison import METRICS, Comparison, Crossing, compare

__all__ = ["METRICS", "Comparison", "Crossing", "compare"]
