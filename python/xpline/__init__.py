"""A laboratory for persistent and far memory: measure it, model it, check the model.

>>> import xpline
>>> table = xpline.bench.latency("optane-ni", op="load", pattern=["sequential", "random"])
>>> sequential, random = table["latency_mean_ns"]
>>> random > 1.5 * sequential  # the media read 256 B at once, so three loads in four find their line in the buffer
True
"""

from xpline import bench
from xpline._native import __version__
from xpline.errors import Interrupted, XplineError
from xpline.platform import Platform, platform_names

__all__ = ["Interrupted", "Platform", "XplineError", "__version__", "bench", "platform_names"]
