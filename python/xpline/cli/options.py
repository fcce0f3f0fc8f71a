"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from xpline.errors import XplineError
from xpline.trace import FORMATS

#: ``--set KEY=VALUE``, any number of times.
Overrides = Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="Override a value of the platform.")]

#: Where a sample of the requests goes, with their way through the machine.
TimelineFile = Annotated[
    Path | None,
    typer.Option(
        "--timeline",
        help="Write a sample of the requests on their way through cores, queues, buffers and media: FILE.json.gz, for "
        "Perfetto.",
    ),
]

#: What a trace does not say of itself.
Format = Annotated[str, typer.Option(help=f"Format of the trace: auto (by its content), {', '.join(FORMATS)}.")]
Clock = Annotated[str | None, typer.Option(help="Clock of the trace's times, such as 1.2GHz.")]
Geometry = Annotated[
    str | None,
    typer.Option(
        help="For address vectors: how many there are of each part, such as 1,2,4,4,65536,128 for channels, ranks, "
        "bank groups, banks, rows and columns."
    ),
]


def parse_overrides(texts: Sequence[str] | None) -> dict[str, object]:
    """Overrides as :class:`xpline.Platform` takes them.

    >>> parse_overrides(["optane.xpbuffer.lines=128"])
    {'optane.xpbuffer.lines': '128'}
    """
    overrides: dict[str, object] = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not equals:
            raise XplineError(f"--set {text}: write KEY=VALUE, such as optane.xpbuffer.lines=128")
        overrides[key.strip()] = value.strip()
    return overrides
