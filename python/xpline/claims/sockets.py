"""Claims about memory of the other socket."""

from __future__ import annotations

from collections.abc import Callable

from xpline.claims.rules import more_than, number
from xpline.loads import GAPS, REMOTE_LATENCY, SOCKET_PEAKS
from xpline.sweeps import LATENCY, Results


def _longer(op: str, pattern: str = "sequential") -> Callable[[Results], float]:
    """Latency over the link, over that of the near socket."""
    far, near = REMOTE_LATENCY[op, pattern], LATENCY["optane", op, pattern]
    return lambda results: results.value(far, "latency_mean_ns") / results.value(near, "latency_mean_ns")


def _share(op: str) -> Callable[[Results], float]:
    far, near = SOCKET_PEAKS[op, "far"], SOCKET_PEAKS[op, "near"]
    return lambda results: results.value(far, "bandwidth") / results.value(near, "bandwidth")


def _largest_gap(memory: str) -> Callable[[Results], float]:
    return lambda results: max(
        results.value(near, "bandwidth") / results.value(far, "bandwidth") for near, far in GAPS[memory]
    )


_SEARCHED = f"largest over {len(GAPS['optane'])} mixes, threads and sizes"

COVERED = {
    "numa-read-seq": number(_longer("load")),
    "numa-read-rand": number(_longer("load", "random")),
    "numa-write-nt": number(_longer("ntstore")),
    "numa-write-clwb": number(_longer("store+clwb")),
    "numa-bw-read": number(_share("load"), "10 threads far, 16 near"),
    "numa-bw-write": number(_share("ntstore"), "4 threads"),
    "numa-worst": more_than(_largest_gap("optane"), _SEARCHED),
    "numa-worst-dram": number(_largest_gap("dram"), _SEARCHED),
}
