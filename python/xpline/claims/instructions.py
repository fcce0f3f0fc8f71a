"""Claims about the instructions that persist data: which to use at what size, and how often to fence."""

from __future__ import annotations

from xpline.claims.rules import last_where, step
from xpline.sweeps import PERSIST_BANDWIDTH, PERSIST_LATENCY, QUEUED, SFENCE, SLOW_TRANSFER_NS, Results

#: A write loses bandwidth when it has a tenth less of it.
_LOSS = 0.9


def _flush_does_not_help(results: Results) -> int | None:
    plain, flushed = (results.curve(PERSIST_BANDWIDTH[op]) for op in ("store", "store+clwb"))
    return last_where({size: flushed[size] <= plain[size] for size in plain})


def _ntstore_is_not_faster(results: Results) -> int | None:
    nt, clwb = (results.curve(PERSIST_LATENCY[op], "latency_mean_ns") for op in ("ntstore", "store+clwb"))
    return last_where({size: nt[size] >= clwb[size] for size in nt})


def _ntstore_is_not_highest(results: Results) -> int | None:
    nt, *others = (results.curve(PERSIST_BANDWIDTH[op]) for op in ("ntstore", "store+clwb", "store"))
    return last_where({size: nt[size] <= max(other[size] for other in others) for size in nt})


def _best_interval(results: Results) -> int:
    curve = results.curve(SFENCE["during"])
    return max(curve, key=curve.__getitem__)


def _late_flush_is_no_loss(results: Results) -> int | None:
    during, after = results.curve(SFENCE["during"]), results.curve(SFENCE["after"])
    return last_where({size: after[size] >= _LOSS * during[size] for size in during})


def _queued(results: Results) -> int | None:
    """The bytes that a slow DIMM does not hold up: another line costs less than half a transfer of its link."""
    curve = results.curve(QUEUED, "latency_mean_ns")
    quick = [lines for lines in curve if lines == 1 or curve[lines] - curve[lines - 1] < SLOW_TRANSFER_NS / 2]
    waiting = [lines for lines in curve if lines not in quick]
    return last_where({64 * lines: not waiting or lines < waiting[0] for lines in curve})


COVERED = {
    "flush-helps-above": step(_flush_does_not_help, PERSIST_BANDWIDTH["store"].steps),
    "nt-lat-crossover": step(_ntstore_is_not_faster, PERSIST_LATENCY["ntstore"].steps),
    "nt-bw-crossover": step(_ntstore_is_not_highest, PERSIST_BANDWIDTH["ntstore"].steps),
    "sfence-peak": step(_best_interval, SFENCE["during"].steps),
    "sfence-late": step(_late_flush_is_no_loss, SFENCE["during"].steps),
    "imc-wpq": step(
        _queued,
        [64 * lines for lines in QUEUED.steps],
        f"a write to a DIMM whose link takes {SLOW_TRANSFER_NS} ns a line",
    ),
}
