"""What all measurements have in common on the command line: options, and how results are handed out."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from xpline import table
from xpline.bench.nodes import placements
from xpline.cli.host_options import HostOptions
from xpline.cli.options import Overrides, TimelineFile, parse_overrides
from xpline.cli.output import print_table
from xpline.errors import XplineError
from xpline.host.host import Host, is_target
from xpline.platform import Platform


@dataclass
class Common(HostOptions):
    """The options that all experiments share."""

    on: Annotated[
        str,
        typer.Option(
            help="What is measured: platforms, by name or file, and memory of this machine (host, host:node=N, "
            "host:file=PATH, host:dax=PATH, host:block=PATH); separated by commas."
        ),
    ] = "optane"
    set: Overrides = None
    cpu_node: Annotated[
        str | None,
        typer.Option(
            help="Socket of the threads: 0, 1, both (in turn), or a list; on the host, one NUMA node.",
            show_default="the platform's",
        ),
    ] = None
    mem_node: Annotated[
        str | None,
        typer.Option(help="Socket of the memory: 0, 1, both (page by page), or a list.", show_default="the platform's"),
    ] = None
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random addresses.")] = 1
    max_requests: Annotated[int | None, typer.Option(help="The longest a point may run, in requests.")] = None
    jobs: Annotated[int | None, typer.Option(min=1, help="Points run side by side.", show_default="all cores")] = None
    explain: Annotated[
        bool, typer.Option("--explain", help="Add what bounds each point: core, fabric, queue, buffer or media.")
    ] = False
    json: Annotated[bool, typer.Option("--json", help="Print the whole table as JSON.")] = False
    csv: Annotated[bool, typer.Option("--csv", help="Print the whole table as CSV.")] = False
    out: Annotated[Path | None, typer.Option(help="Write the whole table: FILE.parquet, .csv or .json.")] = None
    timeline: TimelineFile = None

    def platforms(self) -> list[Platform | Host]:
        """The platforms that are named, with the overrides, once for each placement of threads and memory; and the
        targets on this machine."""
        overrides = parse_overrides(self.set)
        names = [name.strip() for name in self.on.split(",")]
        if self.mem_node is not None and any(map(is_target, names)):
            raise XplineError("--mem-node: is for models; on this machine, name the node as host:node=N")
        nodes = [] if all(map(is_target, names)) else placements(self.cpu_node, self.mem_node)
        if overrides and all(map(is_target, names)):
            raise XplineError(f"--set {self.set[0]}: {self.on} is no model; only models have values to override")
        if self.explain and any(map(is_target, names)):
            raise XplineError("--explain: relieves the parts of a model; leave the host out")
        if self.timeline and any(map(is_target, names)):
            raise XplineError(f"--timeline {self.timeline}: shows the parts of a model; leave the host out")
        return [
            one for name in names for one in ([self.host(name)] if is_target(name) else _placed(name, overrides, nodes))
        ]

    def check_outputs(self) -> None:
        """Raise, before any work is done, if results could not be handed out."""
        if self.json and self.csv:
            raise XplineError("--json and --csv: choose one")
        if self.out:
            table.check_writable(self.out)
        if self.timeline:
            from xpline import timeline

            timeline.check_writable(self.timeline)

    def check_timeline(self, points: int, platforms: int) -> None:
        """Raise if a timeline is asked for of more than one point."""
        if self.timeline and points * platforms > 1:
            raise XplineError(
                f"--timeline {self.timeline}: shows one point on one platform; here are {points} on {platforms}"
            )

    def write_timeline(self, row: dict[str, Any]) -> None:
        """Write the timeline of a row, if one was asked for."""
        if self.timeline:
            from xpline import timeline

            about = {key: row[key] for key in table.SETTINGS if key in row}
            timeline.write(self.timeline, row["timeline"], about)

    def hand_out(self, result: pl.DataFrame, as_json: Callable[[pl.DataFrame], str] = pl.DataFrame.write_json) -> None:
        """Write a table where it was asked for, and print it."""
        if self.out:
            table.write(result, self.out)
        if self.json:
            print(as_json(result))
        elif self.csv:
            sys.stdout.write(result.write_csv())
        else:
            print_table(result)


def _placed(name: str, overrides: dict[str, object], nodes: list[dict[str, object]]) -> list[Platform]:
    return [Platform(name, set=overrides | place) for place in nodes]


def with_common(command: Callable[..., None], own: dict[str, Any]) -> Callable[..., None]:
    """A command with parameters of its own, by name, and the common options, which it takes as the first argument."""

    @wraps(command)
    def run(**arguments: Any) -> None:
        common = Common(**{field.name: arguments.pop(field.name) for field in fields(Common)})
        command(common, **arguments)

    shared = inspect.signature(Common, eval_str=True).parameters
    parameters = [p.replace(kind=p.KEYWORD_ONLY) for p in (*own.values(), *shared.values())]
    # What typer builds the options from:
    vars(run)["__signature__"] = inspect.Signature(parameters)
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run
