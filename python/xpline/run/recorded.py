"""Recorded runs: the op streams of a program, run again on any platform."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from xpline import _native
from xpline.errors import XplineError
from xpline.platform import Platform
from xpline.run.outcome import Outcome, Run


def run_recorded(
    path: str | PathLike[str],
    on: Platform | str = "optane",
    compare: Sequence[Platform | str] = (),
    progress: Callable[[int], object] | None = None,
) -> Run:
    """A recorded run on platforms, as :func:`xpline.run.run_program` does it live."""
    about = json.loads(_native.recorded_about(fspath(path)))
    platforms = [one if isinstance(one, Platform) else Platform(one) for one in (on, *compare)]
    outcomes = []
    for platform in platforms:
        outcome = _native.run_recorded(platform._native, fspath(path), on_progress=progress)
        if outcome is None:
            raise XplineError(f"{path}: the program touched no tracked memory: there is nothing to run")
        outcomes.append(json.loads(outcome))
    notes = ["the recording has but the beginning of the run"] if about["cut"] else []
    return Run.of_json(about | {"outcomes": outcomes}, platforms, notes=notes, recording=Path(path))


def timeline_of(run: Run) -> list[list[dict[str, Any]]]:
    """A sample of the requests of a run, core by core, for :func:`xpline.timeline.write`: its recording runs again."""
    text = run.recording and _native.sample_recorded(run.main.platform._native, fspath(run.recording))
    if not text:
        raise XplineError("no timeline: there is no recording of the run, or nothing in it")
    return json.loads(text)


def rerun(
    run: Run, change: Mapping[str, Any] | None = None, cores: int | None = None, platform: Platform | None = None
) -> Outcome | None:
    """A run's recording once more: with a change made to its op streams, on fewer cores, or on another platform.

    ``change`` is a mapping with ``kind`` and the sites that it is about, as the reference has it. None without a
    recording.
    """  # fmt: skip
    if run.recording is None:
        return None
    platform = platform or run.main.platform
    text = None if change is None else json.dumps(change)
    outcome = _native.run_recorded(platform._native, fspath(run.recording), text, cores)
    return None if outcome is None else Outcome(platform, json.loads(outcome))
