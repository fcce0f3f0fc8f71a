"""How memory of this machine is measured, on the command line."""

from dataclasses import dataclass, fields
from functools import partial
from typing import Annotated

import typer

from xpline.errors import XplineError
from xpline.host.host import Host

_option = partial(typer.Option, rich_help_panel="On the host")


@dataclass
class HostOptions:
    """The options of :class:`xpline.host.Host`, by the same names."""

    isa: Annotated[
        str | None, _option(help="Vectors that move data: avx512, avx2 or sse2.", show_default="the widest")
    ] = None
    flush: Annotated[str, _option("--flush-by", help="How lines are written back: clwb, clflushopt or clflush.")] = (
        "clwb"
    )
    pages: Annotated[str, _option(help="Pages: transparent, 4KiB, 2MiB or 1GiB.")] = "transparent"
    cpus: Annotated[
        str | None, _option(help="CPUs that threads are pinned to, such as 0-3,8.", show_default="all allowed")
    ] = None
    cpu_node: Annotated[str | None, _option(help="NUMA node whose CPUs are used.")] = None
    span: Annotated[str, _option(help="Bytes that each thread works in.")] = "2GiB"
    precision: Annotated[str, _option(help="Half-width that the 95 % interval of a median may have.")] = "1%"
    time_limit: Annotated[float, _option(help="The longest a point may take, in seconds.")] = 10.0
    window: Annotated[float, _option(help="Seconds of one repeat.")] = 0.002
    destroy: Annotated[bool, _option("--destroy", help="Let a device be overwritten.")] = False
    keep: Annotated[bool, _option("--keep", help="Leave the file that was created.")] = False
    dimms: Annotated[int, _option(min=0, help="DIMMs that a device-DAX target is interleaved over.")] = 0
    chunk: Annotated[str, _option(help="Bytes from one of these DIMMs to the next.")] = "4KiB"

    def host(self, target: str) -> Host:
        """The target, measured with these options."""
        options = {field.name: getattr(self, field.name) for field in fields(HostOptions)}
        if self.cpu_node is not None:
            if not self.cpu_node.isdecimal():
                raise XplineError(f"--cpu-node {self.cpu_node}: on the host, expected the number of one NUMA node")
            options["cpu_node"] = int(self.cpu_node)
        return Host(target, **options)
