"""The real memory of this machine, measured as the models are.

>>> import xpline
>>> from xpline.host import Host
>>> host = Host(span="16MiB", window=0.001, time_limit=0.1)
>>> table = xpline.bench.random(host, op="load", size=64)
>>> table["source"].item(), table["repeats"].item() > 1
('host', True)
"""

from xpline.host.host import Host, is_target
from xpline.host.machine import Machine

__all__ = ["Host", "Machine", "is_target"]
