"""Advice: the rules of the device that a program breaks, with evidence, and what mending would gain.

A rule looks at the facts of a run and proposes a change; the machine runs the recorded op streams once more with the
change
made, and what gains nothing is not reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from xpline.advice import dimms, flushes, stores
from xpline.advice.rule import Candidate, Finding, Gain, Rule, Trial
from xpline.run.outcome import Outcome, Run
from xpline.run.recorded import rerun

__all__ = ["RULES", "Candidate", "Finding", "Gain", "Rule", "Trial", "advise"]

#: Every rule, by topic.
RULES: tuple[Rule, ...] = (*stores.RULES, *flushes.RULES, *dimms.RULES)

#: Candidates of one rule that are looked into, those that cost most first.
MOST = 3


def advise(run: Run, progress: Callable[[int, int], object] = lambda done, total: None) -> list[Finding]:
    """What the program should change: what loses data first, then what gains most.

    ``progress`` hears how many candidates were checked, of how many.
    """
    if not run.outcomes:
        return []
    candidates = [(rule, candidate) for rule in RULES for candidate in _costliest(rule, run)]
    base = _base(run, candidates)
    findings = []
    for done, (rule, candidate) in enumerate(candidates):
        progress(done, len(candidates))
        gain = _gain(run, base, candidate.trials)
        if rule.correctness or gain is None or _pays(rule, gain, base):
            findings.append(Finding(rule, candidate, gain, _notes(run, rule, gain)))
    progress(len(candidates), len(candidates))
    return sorted(findings, key=_order)


def _costliest(rule: Rule, run: Run) -> Iterator[Candidate]:
    found = sorted(rule.find(run), key=lambda one: (-one.time_ns, -one.media_bytes))
    yield from found[:MOST]


def _base(run: Run, candidates: list[tuple[Rule, Candidate]]) -> Outcome | None:
    """What changes are compared with: the recorded streams as they are."""
    if run.recording is None:
        return None
    if run.cut and any(candidate.trials for _, candidate in candidates):
        return rerun(run)
    return run.main


def _gain(run: Run, base: Outcome | None, trials: Sequence[Trial]) -> Gain | None:
    """The best that the trials come to."""
    gains = []
    for trial in trials if base else ():
        after = rerun(run, trial.change, trial.cores, trial.platform)
        if base and after and after.time_ns:
            speedup, saved = base.time_ns / after.time_ns, base.media_bytes - after.media_bytes
            gains.append(Gain(speedup, trial.name, saved))
    return max(gains, key=lambda gain: gain.speedup, default=None)


def _pays(rule: Rule, gain: Gain, base: Outcome | None) -> bool:
    saved = gain.media_bytes / base.media_bytes if base and base.media_bytes else 0.0
    if gain.speedup >= rule.least_speedup:
        return saved > -rule.least_saved
    return gain.speedup >= 0.98 and saved >= rule.least_saved


def _notes(run: Run, rule: Rule, gain: Gain | None) -> list[str]:
    if gain is not None:
        return ["checked on the beginning of the run, which is what was recorded"] if run.cut else []
    return [] if rule.correctness else ["not checked: the op streams were not recorded"]


def _order(finding: Finding) -> tuple[bool, float, int]:
    gain = finding.gain
    return not finding.rule.correctness, -(gain.speedup if gain else 1.0), -(gain.media_bytes if gain else 0)
