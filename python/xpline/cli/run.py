"""``xpline run``: a program on the modelled memory."""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from xpline.cli.caveats import warn_budget, warn_volatile
from xpline.cli.options import Overrides, TimelineFile, parse_overrides
from xpline.errors import XplineError
from xpline.platform import Platform

#: Exit status after Ctrl-C.
INTERRUPTED = 130

#: Lines that the summary names.
MOST_LINES = 8


def run(
    command: Annotated[
        list[str] | None, typer.Argument(help="The program and its arguments, after --.", metavar="PROGRAM ARGS")
    ] = None,
    pmem: Annotated[
        list[Path] | None, typer.Option(metavar="PATH", help="Files under PATH are persistent memory; may be repeated.")
    ] = None,
    heap: Annotated[bool, typer.Option("--heap", help="All memory of the program is on the platform.")] = False,
    on: Annotated[str, typer.Option(help="The platform, by name or file.")] = "optane",
    callers: Annotated[
        bool, typer.Option("--callers", help="Follow who calls whom: call sites, and flame graphs from main.")
    ] = False,
    compare: Annotated[
        str | None, typer.Option(help="Platforms to compare it with, separated by commas.", metavar="PLATFORMS")
    ] = None,
    set: Overrides = None,
    out: Annotated[Path | None, typer.Option(help="Write the report to this folder.", metavar="DIR")] = None,
    trace: Annotated[
        Path | None, typer.Option(help="Record the op streams in FILE, to run them again.", metavar="FILE")
    ] = None,
    replay: Annotated[
        Path | None, typer.Option(help="Run the op streams recorded in FILE, instead of a program.", metavar="FILE")
    ] = None,
    timeline: TimelineFile = None,
    advice: Annotated[bool, typer.Option(help="Look for what to change, and check what it would gain.")] = True,
    annotate: Annotated[
        str | None, typer.Option(help="Print the source file whose name ends so, with its costs.", metavar="NAME")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the whole result as JSON, after the program's output.")
    ] = False,
) -> None:
    """Run an unmodified x86-64 program, and see what the device would make of it.

    The program's exit status is passed on. Its op streams are traced by `xpline tracer install`'s emulator.
    """
    from xpline.advice import advise
    from xpline.files import make_folder
    from xpline.run.summary import annotation, summary

    overrides = parse_overrides(set)
    platforms = [Platform(name.strip(), set=overrides) for name in [on, *(compare.split(",") if compare else [])]]
    if replay is not None and (command or pmem or heap or trace or callers):
        raise XplineError(
            "--replay runs what was recorded: leave out the program, --pmem, --heap, --callers and --trace"
        )
    if timeline is not None:
        from xpline.timeline import check_writable

        check_writable(timeline)
    if out is not None:
        make_folder(out)
    warn_volatile(platforms, is_persistent=bool(pmem) or replay is not None)
    warn_budget(platforms)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="xpline-")) if advice or timeline else None
        done = _run(command, pmem, heap, platforms, trace, replay, folder, callers)
        findings = []
        if advice and done.touched:
            from xpline.cli.progress import counting

            with counting("checking advice") as progress:
                findings = advise(done, progress)
        if timeline is not None and done.touched:
            _write_timeline(done, timeline)
        page = None
        if out is not None:
            from xpline.report.run_files import write_run

            page = write_run(done, findings, out)
    if json:
        from xpline.report.run_files import json_of

        print(json_of(done, findings).decode())
    else:
        # What the program printed may be piped on: the summary stays out of it.
        print(summary(done, findings, advice), file=sys.stderr if replay is None else sys.stdout)
        if page is not None:
            print(f"\nreport: {page}", file=sys.stderr)
    if annotate is not None:
        print(annotation(done, annotate))
    if trace is not None and done.recording is None:
        print(f"xpline: {trace}: was not recorded; see above why", file=sys.stderr)
        sys.exit(2)
    if done.interrupted:
        sys.exit(INTERRUPTED)
    sys.exit(done.exit_status)


def _write_timeline(done: Any, file: Path) -> None:
    """The way of a sample of the requests on the first platform."""
    from xpline import timeline
    from xpline.run import timeline_of

    about = {"platform": done.main.platform.name, "command": " ".join(done.command)}
    timeline.write(file, timeline_of(done), about)


def _run(
    command: list[str] | None,
    pmem: list[Path] | None,
    heap: bool,
    platforms: list[Platform],
    trace: Path | None,
    replay: Path | None,
    folder: str | None,
    callers: bool,
) -> Any:
    from xpline.run import run_program, run_recorded

    on, *compare = platforms
    if replay is not None:
        return run_recorded(replay, on, compare)
    return run_program(command or [], pmem or [], heap, on, compare, trace, folder, callers=callers)
