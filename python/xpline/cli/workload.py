"""``xpline bench --workload``: a workload file instead of an experiment."""

from __future__ import annotations

import inspect
import itertools
from pathlib import Path
from typing import Annotated, Any

import typer

from xpline.cli.caveats import warn_budget, warn_volatile
from xpline.cli.common import Common, with_common
from xpline.cli.estimates import note_estimates
from xpline.cli.output import terminal
from xpline.cli.progress import counting
from xpline.errors import IncompleteError, Interrupted, XplineError

File = Annotated[Path | None, typer.Option("--workload", help="A workload file of PerMA-Bench (YAML) to run.")]
Only = Annotated[str | None, typer.Option(help="The one benchmark of the file to run.")]


def install(app: typer.Typer) -> None:
    """Make ``app`` run workload files where it is called without a command."""
    own = dict(inspect.signature(_bench, eval_str=True).parameters)
    del own["common"]
    app.callback(
        invoke_without_command=True,
        no_args_is_help=True,
        help="Measure a memory: bandwidth, latency, write amplification. Every combination of the values given runs. "
        "With --workload, the benchmarks of a file run instead of an experiment.",
    )(with_common(_bench, own))


def _bench(common: Common, ctx: typer.Context, workload: File = None, only: Only = None) -> None:
    given = [name for name in ctx.params if ctx.get_parameter_source(name).name != "DEFAULT"]
    option = f"--{given[0].replace('_', '-')}" if given else ""
    if command := ctx.invoked_subcommand:
        if given:
            raise XplineError(f"{option} before {command}: write it after, as in xpline bench {command} {option} ...")
        return
    if workload is None:
        raise XplineError(f"{option}: name an experiment, or a file with --workload FILE.yaml")
    if common.explain:
        raise XplineError("--explain: is for single experiments; leave it out with --workload")
    _measure(workload, only, common)


def _measure(path: Path, only: str | None, common: Common) -> None:
    from xpline import workload  # only here, for the sake of all other commands' start

    common.check_outputs()
    cases = workload.read(path, only)
    platforms = common.platforms()
    as_json = lambda table: workload.as_json(table, cases)  # noqa: E731
    warn_volatile(platforms, any(case.persists for case in cases))
    warn_budget(platforms)
    for note in workload.without_effect(cases):
        terminal.print(note, soft_wrap=True, markup=False)
    total = len(platforms) * len(cases)
    common.check_timeline(len(cases), len(platforms))
    done = itertools.count(1)

    def count(_: int, row: dict[str, Any]) -> None:
        if "timeline" in row:
            common.write_timeline(row)
        on_progress(next(done), total)

    try:
        with counting(path.name) as on_progress:
            result = workload.run(
                platforms,
                cases,
                seed=common.seed,
                max_requests=common.max_requests,
                jobs=common.jobs,
                timeline=common.timeline is not None,
                progress=count,
            )
    except Interrupted as stopped:
        common.hand_out(stopped.table, as_json)
        terminal.print(stopped)
        raise
    except IncompleteError as failed:
        if failed.table.height:
            common.hand_out(failed.table, as_json)
        raise
    common.hand_out(result, as_json)
    if ended := workload.ended_early(result, cases):
        terminal.print(ended, soft_wrap=True, markup=False)
    note_estimates(platforms)
