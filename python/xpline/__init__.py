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
    from xpline import bench, trace

__all__ = ["Interrupted", "Platform", "XplineError", "__version__", "bench", "platform_names", "trace"]


def __getattr__(name: str) -> Any:
    """Import ``xpline.bench`` and ``xpline.trace`` when they are asked for: polars takes long to load."""
    if name in ("bench", "trace"):
        return import_module(f"xpline.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
