"""Running points: the one way from points to a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import Any

import polars as pl

from xpline import table
from xpline._native import check_points, run_points
from xpline.bench.points import Point
from xpline.errors import IncompleteError, Interrupted, XplineError
from xpline.host.host import Host, is_target
from xpline.platform import Platform

#: What is measured: a model, or memory of this machine.
Memory = Platform | Host

#: A memory, the name or file of one, or several.
Platforms = Memory | str | PathLike[str] | Sequence[Memory | str | PathLike[str]]


def run(
    platform: Platforms,
    points: Iterable[Point],
    jobs: int | None = None,
    progress: Callable[[int, dict[str, Any]], object] | None = None,
) -> pl.DataFrame:
    """Run every point on every platform; a row each, in order, the same bits whatever ``jobs`` is.

    ``jobs`` is how many points run side by side (all cores of the host by default). ``progress`` is called with the
    index of a row and the row itself as each point completes. Ctrl-C raises :class:`xpline.Interrupted`, which holds
    the rows that were complete. A host that fails on the way raises :class:`xpline.errors.IncompleteError`, which holds
    them too.

    >>> run("dram", [{"experiment": "latency", "op": "load", "pattern": "random"}])["settled"].item()
    True
    """
    platforms = loaded(platform)
    points = list(points)
    texts = [json.dumps(point) for point in points]
    for one in platforms:
        check(one, points)
    rows: dict[int, dict[str, Any]] = {}
    for place, one in enumerate(platforms):
        first = place * len(texts)
        settings = {"platform": one.name, "overrides": " ".join(one.overrides) or None}

        def keep(index: int, text: str, first: int = first, settings: dict[str, Any] = settings) -> None:
            row = rows[first + index] = json.loads(text) | settings
            if progress:
                progress(first + index, row)

        try:
            if isinstance(one, Host):
                one.run_points(texts, keep)
            else:
                run_points(one._native, texts, jobs, keep)
        except KeyboardInterrupt:
            raise Interrupted(_table(rows)) from None
        except XplineError as error:
            raise IncompleteError(str(error), _table(rows)) from error
    return _table(rows)


def check(platform: Memory, points: Iterable[Point]) -> None:
    """Raise if a point cannot run on the platform."""
    texts = [json.dumps(point) for point in points]
    if isinstance(platform, Host):
        platform.check_points(texts)
    else:
        check_points(platform._native, texts)


def loaded(platform: Platforms) -> list[Memory]:
    """The memories that are meant, in order."""
    several = [platform] if isinstance(platform, Memory | str | PathLike) else platform
    return [one if isinstance(one, Memory) else Host(one) if is_target(one) else Platform(one) for one in several]


def _table(rows: dict[int, dict[str, Any]]) -> pl.DataFrame:
    return table.from_rows(rows[index] for index in sorted(rows))
