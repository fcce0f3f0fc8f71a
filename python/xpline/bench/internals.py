"""Experiments that show what is inside a DIMM: its buffers, and wear levelling. One thread each."""

from __future__ import annotations

from typing import Unpack

import polars as pl

from xpline.bench.experiments import Options, run_experiment
from xpline.bench.run import Platforms
from xpline.values import Numbers, Words


def chase(
    platform: Platforms,
    region: Numbers = "256..64MiB",
    mask: Numbers = 0,
    cached: bool = False,
    **options: Unpack[Options],
) -> pl.DataFrame:
    """Latency of loads that wait for each other, at random lines of a region, against its size.

    They go past the caches, or, where ``cached``, through them. Past the caches, it rises where the region exceeds a
    buffer of the DIMM. Bits of ``mask`` stay 0 in every address (4096 is bit 12), and the region is spread over the
    others: where the knee moves with a bit, the bit selects the set of a buffer.

    >>> fits, exceeds = chase("optane-ni", region=["8KiB", "1MiB"])["latency_mean_ns"]
    >>> exceeds > 1.4 * fits  # the XPBuffer holds 16 KiB
    True
    """
    return run_experiment(platform, options, "chase", region=region, mask=mask, cached=cached)


def replacement(
    platform: Platforms,
    buffer: Words = "xpbuffer",
    order: Words = "same",
    lines: Numbers = 65,
    **options: Unpack[Options],
) -> pl.DataFrame:
    """Share of ``lines`` that a buffer has given up (``miss_ratio``) when they are read a second time.

    ``buffer`` is xpbuffer, or ait: the cache of the address indirection table, with lines on pages that share a set.
    ``order`` is same, reverse or random: that in which they are read again. Together they tell how lines are replaced.

    >>> replacement("optane-ni", order="reverse", lines=[64, 128])["miss_ratio"].to_list()
    [0.0, 0.5]
    """
    return run_experiment(platform, options, "replacement", buffer=buffer, order=order, lines=lines)


def wear(platform: Platforms, op: Words = "ntstore", size: Numbers = 256, **options: Unpack[Options]) -> pl.DataFrame:
    """Writes of ``size`` bytes to one place over and over, each made persistent: how often wear levelling stalls one.

    ``stall_interval`` is in writes, ``stall_ns`` the time that a stalled write takes.

    >>> from xpline import Platform
    >>> worn = Platform("optane-ni", set={"optane.wear.interval": 500, "optane.wear.stall": "20us"})
    >>> wear(worn, size=256)["stall_interval"].item()
    500
    """
    return run_experiment(platform, options, "wear", op=op, size=size)


def tail(
    platform: Platforms, op: Words = "ntstore", region: Numbers = "256..64MiB", **options: Unpack[Options]
) -> pl.DataFrame:
    """Tail latency of 64 B writes round a hot spot of ``region`` bytes, each made persistent.

    ``stall_share`` is the share of writes that take over ten times the median. A point is 20 million writes, unless
    ``max_requests`` says otherwise.

    >>> hot, wide = tail("optane-ni", region=["256", "16MiB"], max_requests=1 << 18)["stall_share"]
    >>> hot > wide == 0  # wear levelling moves only what is written over and over
    True
    """
    return run_experiment(platform, options, "tail", op=op, region=region)
