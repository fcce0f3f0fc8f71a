"""A laboratory for persistent and far memory: measure it, model it, check the model.

>>> import xpline
>>> table = xpline.bench.latency("optane-ni", op="load", pattern=["sequential", "random"])
>>> sequential, random = table["latency_mean_ns"]
>>> random > 1.5 * sequential  # the media read 256 B at once, so three loads in four find their line in the buffer
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from xpline._native import __version__
from xpline.errors import Interrupted, XplineError
from xpline.platform import Platform, platform_names

if TYPE_CHECKING:
    from xpline import bench

__all__ = ["Interrupted", "Platform", "XplineError", "__version__", "bench", "platform_names"]


def __getattr__(name: str) -> Any:
    """Import ``xpline.bench`` when it is asked for: it needs polars, which takes long to load."""
    if name == "bench":
        return import_module("xpline.bench")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
