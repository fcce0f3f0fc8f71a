"""What a rule is, what it proposes, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xpline.platform import Platform
from xpline.run.lines import Line
from xpline.run.outcome import Run


@dataclass(frozen=True)
class Trial:
    """A change to try on the recorded op streams: to the streams, or to the cores they run on, or to the platform.

    ``name`` says what was done, where a candidate has several to choose from.
    """

    change: Mapping[str, Any] | None = None
    cores: int | None = None
    platform: Platform | None = None
    name: str | None = None


@dataclass(frozen=True)
class Candidate:
    """What a rule suspects, before its gain is known."""

    #: The lines to change, the most important first; none if it is about the run as a whole.
    lines: Sequence[Line]
    #: What was seen, in numbers.
    evidence: str
    #: What to change.
    change: str
    #: Ways to make the change, of which the one that gains most counts; none where it is not about speed.
    trials: Sequence[Trial]
    #: Bytes of media traffic and core time that the lines cost.
    media_bytes: int
    time_ns: float


@dataclass(frozen=True)
class Gain:
    """What the machine says of a change: the same op streams, with it made."""

    #: Time before over time after.
    speedup: float
    #: What was done, where there was a choice.
    by: str | None
    #: Bytes of media traffic saved; negative where it costs more.
    media_bytes: int


@dataclass(frozen=True)
class Rule:
    """A rule of the device, and how to see that a program breaks it.

    ``find`` yields candidates. One is reported if one of its trials gains at least ``least_speedup`` in time, or
    saves at least
    ``least_saved`` of all media traffic; a rule about correctness has no trials and is always reported.
    """

    name: str
    title: str
    #: Where the rule comes from.
    source: str
    #: Why, in a sentence or two.
    why: str
    find: Callable[[Run], Iterator[Candidate]]
    #: Whether breaking it loses data, not time.
    correctness: bool = False
    least_speedup: float = 1.02
    least_saved: float = 0.1


@dataclass(frozen=True)
class Finding:
    """A rule that a program breaks, with evidence."""

    rule: Rule
    candidate: Candidate
    #: None where it could not be checked, or is not about speed.
    gain: Gain | None
    notes: Sequence[str] = field(default=())

    @property
    def line(self) -> Line | None:
        """The line that the finding stands at."""
        return self.candidate.lines[0] if self.candidate.lines else None

    @property
    def told(self) -> str:
        """The gain, as people write it; empty where there is none."""
        if self.gain is None:
            return ""
        saved = self.gain.media_bytes
        traffic = (
            f"{size(abs(saved))} of media traffic {'saved' if saved > 0 else 'more'}" if abs(saved) >= 4096 else ""
        )
        parts = [f"{self.gain.speedup:.2f} times as fast", traffic, f"by: {self.gain.by}" if self.gain.by else ""]
        return ", ".join(filter(None, parts))

    @property
    def where(self) -> str:
        """That line, as people write it."""
        if self.line is None:
            return "the whole run"
        called = [] if self.line.file else self.line.called_from()
        return f"{self.line.where}, called from {called[0][0]}" if called else self.line.where

    def to_dict(self) -> dict[str, Any]:
        """As ``run.json`` holds it."""
        place = self.line
        return {
            "rule": self.rule.name,
            "title": self.rule.title,
            "where": self.where,
            "function": place and place.function,
            "file": place and place.file,
            "line": place and place.line,
            "sites": [site for line in self.candidate.lines for site in line.sites],
            "evidence": self.candidate.evidence,
            "change": self.candidate.change,
            "cost_media_bytes": self.candidate.media_bytes,
            "cost_time_ns": self.candidate.time_ns,
            "speedup": self.gain and self.gain.speedup,
            "gained_by": self.gain and self.gain.by,
            "saved_media_bytes": self.gain and self.gain.media_bytes,
            "source": self.rule.source,
        }


def count(number: int, what: str) -> str:
    """How many of what.

    >>> count(1, "line"), count(2000, "line")
    ('1 line', '2,000 lines')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def size(count: float) -> str:
    """Bytes as people write them.

    >>> size(512), size(65536), size(3.5 * 2**20)
    ('512 B', '64.0 KiB', '3.5 MiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024 or unit == "GiB":
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError


def duration(ns: float) -> str:
    """A time as people write it.

    >>> duration(250), duration(1.5e6)
    ('250 ns', '1.5 ms')
    """
    for unit in ("ns", "µs", "ms", "s"):
        if abs(ns) < 1000 or unit == "s":
            return f"{ns:.0f} ns" if unit == "ns" else f"{ns:.1f} {unit}"
        ns /= 1000
    raise AssertionError
