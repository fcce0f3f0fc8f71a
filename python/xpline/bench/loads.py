"""Experiments that put a load on the memory: reads and writes mixed, and the latency that is left beside them."""

from __future__ import annotations

from typing import Unpack

import polars as pl

from xpline.bench.experiments import Options, run_experiment
from xpline.bench.run import Platforms
from xpline.values import Numbers, Words

#: The pauses of Intel's Memory Latency Checker, in core clocks.
DELAYS = (
    0, 50, 100, 200, 300, 400, 500, 700, 850, 1000, 1150, 1300, 1500, 1700, 2500, 3500, 5000, 20000, 40000, 80000,
)  # fmt: skip


def mix(
    platform: Platforms,
    mix: Words = "1:1",
    op: Words = "store",
    pattern: Words = "sequential",
    size: Numbers = 64,
    region: Numbers = "1GiB",
    threads: Numbers = 1,
    **options: Unpack[Options],
) -> pl.DataFrame:
    """Bandwidth of reads and writes in the ratio ``mix`` ("2:1": two lines read for one written), in a buffer of
    ``region`` bytes for the reads and another for the writes of each thread.

    ``op`` is what a write is. One that goes through the caches reads its line first, which is one of the reads; with
    ntstore, reads are loads. Bandwidth counts the lines both ways between caches and memory.

    >>> near, far = mix("optane", mix="1:1", threads=4, mem_node=[0, 1])["bandwidth_mib_s"]
    >>> near > 1.5 * far  # other socket's Optane, reads and writes at once, several threads: the worst of all
    True
    """
    return run_experiment(
        platform, options, "mix", mix=mix, op=op, pattern=pattern, size=size, region=region, threads=threads
    )


def loaded(
    platform: Platforms,
    mix: Words = "1:0",
    op: Words = "load",
    pattern: Words = "sequential",
    delay: Numbers = DELAYS,
    region: Numbers = "1GiB",
    threads: Numbers = 18,
    **options: Unpack[Options],
) -> pl.DataFrame:
    """Latency of one thread's loads, each waiting for the one before, while ``threads`` others make the traffic of a
    :func:`mix` and pause for ``delay`` core clocks after each line: latency against delivered bandwidth.

    >>> busy, idle = loaded("dram", delay=[0, 20000])["latency_mean_ns"]
    >>> busy > idle
    True
    """
    return run_experiment(
        platform, options, "loaded", mix=mix, op=op, pattern=pattern, delay=delay, region=region, threads=threads
    )
