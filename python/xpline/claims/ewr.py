"""Claims about the effective write ratio and the XPBuffer."""

from __future__ import annotations

from xpline.claims.rules import last_where, number, step
from xpline.sweeps import CACHED_STORES, SIZES, THREADS, XPBUFFER, Results

#: Half-line rounds whose write amplification exceeds this no longer combine.
_AMPLIFIED = 1.1


def _one_writer(results: Results, size: int) -> float:
    return results.curve(SIZES["optane-ni", "ntstore"], "ewr")[size]


def _combined_lines(results: Results) -> int | None:
    """The largest region, in XPLines, below the first that is amplified."""
    ewr = results.curve(XPBUFFER, "ewr")
    amplified = [lines for lines, value in ewr.items() if 1 / value > _AMPLIFIED]
    return last_where({lines: not amplified or lines < amplified[0] for lines in ewr})


COVERED = {
    "ewr-64": number(lambda results: _one_writer(results, 64)),
    "ewr-256": number(lambda results: _one_writer(results, 256)),
    "ewr-8t": number(lambda results: results.curve(THREADS["optane-ni", "ntstore"], "ewr")[8]),
    "ewr-noflush": number(lambda results: results.value(CACHED_STORES["store"], "ewr")),
    "ewr-flush": number(lambda results: results.value(CACHED_STORES["store+clwb"], "ewr")),
    "xpbuffer": step(_combined_lines, XPBUFFER.steps),
}
