"""What came of a run: one outcome a platform, and what is known of the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from xpline.platform import Platform
from xpline.run.lines import Line, lines_of

#: What a thread's time goes to, in the order of the numbers of an outcome.
CAUSES = ("compute", "cache", "link", "buffer", "media", "queue", "fence")


@dataclass(frozen=True)
class Outcome:
    """A run on one platform. Times are in nanoseconds, traffic is in bytes.

    ``data`` is the whole of it, as ``run.json`` holds it.
    """

    platform: Platform
    data: Mapping[str, Any]

    @property
    def time_ns(self) -> float:
        """From the first op to the end of the last thread."""
        return self.data["time_ps"] / 1000

    @property
    def counters(self) -> Mapping[str, Any]:
        """Bytes at every boundary, EWR and ERR."""
        return self.data["counters"]

    @property
    def ewr(self) -> float | None:
        """Bytes that the memory controllers wrote over bytes that the media wrote."""
        return self.counters["ewr"]

    @property
    def err(self) -> float | None:
        """Bytes that the memory controllers read over bytes that the media read."""
        return self.counters["err"]

    @cached_property
    def causes_ns(self) -> dict[str, float]:
        """Core time by cause, all threads together."""
        return {cause: time / 1000 for cause, time in zip(CAUSES, self.data["time_by_cause_ps"], strict=True)}

    @property
    def busy_ns(self) -> float:
        """Core time of all threads together, without the time in which they had nothing to do."""
        return sum(self.causes_ns.values())

    @property
    def memory_ns(self) -> float:
        """Core time that is not computing."""
        return self.busy_ns - self.causes_ns["compute"]

    @property
    def media_bytes(self) -> int:
        """Bytes that the media read and wrote."""
        return self.counters["media_read_bytes"] + self.counters["media_written_bytes"]


@dataclass(frozen=True)
class Run:
    """A program's run on one or more platforms; the first outcome is of the platform that advice is given for.

    >>> run = Run.of_json({"outcomes": [], "sites": [], "totals": {}, "command": ["true"]}, [])
    >>> run.touched
    False
    """

    command: Sequence[str]
    outcomes: Sequence[Outcome]
    #: The sites of the program, by their numbers: module, offset, call, frames.
    sites: Sequence[Mapping[str, Any]]
    #: Calls that functions of the sites were entered by: the same, of the call instruction; ``stack`` is the one around
    #: it, counted from 1. Empty where callers were not followed.
    calls: Sequence[Mapping[str, Any]] = field(default=(), kw_only=True)
    #: What was seen of the program: processes, threads, instructions, accesses, files.
    totals: Mapping[str, Any]
    #: Whether all memory of the program was modelled, not only tracked files.
    heap: bool = False
    #: Exit status of the program, or the signal that ended it.
    ended: Mapping[str, int | None] = field(default_factory=dict)
    #: Whether Ctrl-C was pressed.
    interrupted: bool = False
    #: What the reader should know: streams that broke off, a recording that has but the beginning.
    notes: Sequence[str] = ()
    #: Where the op streams are recorded, to be run again; None if nowhere.
    recording: Path | None = None
    #: Whether the recording has but the beginning of the run.
    cut: bool = False

    @classmethod
    def of_json(cls, data: Mapping[str, Any], platforms: Sequence[Platform], **known: Any) -> Run:
        """A run from what the extension returns."""
        outcomes = [Outcome(platform, one) for platform, one in zip(platforms, data["outcomes"], strict=False)]
        known = {"command": data.get("command", ()), "ended": data.get("ended", {}), **known}
        return cls(outcomes=outcomes, sites=data["sites"], calls=data.get("calls", ()), totals=data["totals"], **known)

    @property
    def touched(self) -> bool:
        """Whether the program touched tracked memory at all."""
        return any(
            outcome.counters["bytes_loaded"] + outcome.counters["bytes_stored"] + outcome.counters["imc_written_bytes"]
            for outcome in self.outcomes
        )

    @property
    def main(self) -> Outcome:
        """The outcome that advice is given for."""
        return self.outcomes[0]

    @cached_property
    def lines(self) -> list[Line]:
        """The source lines of the program, those with the most time in memory first."""
        return lines_of(self.sites, self.main.data["sites"], self.calls)

    def ratios(self) -> dict[str, float]:
        """Time on the first platform over the time on each."""
        return {outcome.platform.name: self.main.time_ns / outcome.time_ns for outcome in self.outcomes[1:]}

    def file_of(self, page: int) -> str | None:
        """The tracked file on a page of 2 MiB of the platform's memory."""
        return self._files.get(page)

    @cached_property
    def _files(self) -> dict[int, str]:
        return {page: self.totals["files"][file] for page, file in self.totals.get("pages", ())}

    @property
    def exit_status(self) -> int:
        """The program's exit status, as a shell has it: 128 and the signal's number where one ended it."""
        if self.ended.get("signal") is not None:
            return 128 + int(self.ended["signal"] or 0)
        return int(self.ended.get("code") or 0)
