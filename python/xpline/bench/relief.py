"""What bounds a point: each part of the platform is relieved in turn, and the point is run again.

The part whose relief makes the point fastest is what bounds it. Nothing is asked of the model but to run, so that the
answer is about the model as it is, not about what it keeps books on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import polars as pl

from xpline import changes
from xpline.bench.points import Point
from xpline.bench.run import Platforms, loaded, run
from xpline.errors import Interrupted

#: The parts, in the order of a request's way, and what relieves each.
PARTS = changes.read(files("xpline.bench") / "relief.toml", "part")

#: A part bounds a point if its relief makes the point faster by more than this share.
LEAST_GAIN = 0.05

#: What bounds a point when no part does on its own.
NOTHING = "none"


@dataclass(frozen=True)
class Bound:
    """What bounds a point: a part, and by how much more its relief alone makes the point do (0.5: half as much again).

    ``gains`` are those of all parts, the greatest first.
    """

    gains: Mapping[str, float]

    @property
    def part(self) -> str:
        """The part, or "none" where no relief gains more than 5 %."""
        return next((part for part, gain in self.gains.items() if gain > LEAST_GAIN), NOTHING)

    @property
    def gain(self) -> float:
        """What the relief of the part gains."""
        return next(iter(self.gains.values()), 0.0)

    def __str__(self) -> str:
        return ", ".join(f"{part} {_times(gain)}" for part, gain in self.gains.items() if gain > LEAST_GAIN) or NOTHING


def _times(gain: float) -> str:
    return f"+{gain:.0%}" if gain < 1 else f"×{1 + gain:.1f}" if gain < 9 else "×10 or more"


def bound(usual: Mapping[str, Any], relieved: Mapping[str, Mapping[str, Any]]) -> Bound:
    """What bounds a point, from its row and the rows with each part relieved.

    >>> reliefs = {"core": {"bandwidth_mib_s": 100.0}, "media": {"bandwidth_mib_s": 250.0}}
    >>> found = bound({"bandwidth_mib_s": 100.0}, reliefs)
    >>> found.part, found.gain
    ('media', 1.5)
    """
    gains = {part: _speed(row) / _speed(usual) - 1 for part, row in relieved.items()}
    return Bound(dict(sorted(gains.items(), key=lambda item: -item[1])))


def _speed(row: Mapping[str, Any]) -> float:
    """What a point does in a time: bytes, or accesses where their latency is measured."""
    return row["bandwidth_mib_s"] or 1 / row["latency_mean_ns"]


def explain(
    usual: pl.DataFrame,
    platform: Platforms,
    points: Sequence[Point],
    jobs: int | None = None,
    progress: Callable[[int, dict[str, Any]], object] | None = None,
) -> pl.DataFrame:
    """The table that :func:`run` made of the same platforms and points, with what bounds each row: ``bound``, the part,
    and ``bound_gain``, by what share its relief alone makes the point faster.

    >>> points = [{"experiment": "random", "op": "ntstore", "size": 64, "threads": 8}]
    >>> explain(run("optane-ni", points), "optane-ni", points)["bound"].to_list()
    ['media']
    """
    platforms = loaded(platform)
    bounds: list[Bound] = []
    try:
        for place, one in enumerate(platforms):
            relieved = {
                part.name: run(one.changed(part.on(one)), points, jobs, progress).iter_rows(named=True)
                for part in PARTS
                if part.on(one)
            }
            own = usual.slice(place * len(points), len(points)).iter_rows(named=True)
            for row, *others in zip(own, *relieved.values(), strict=True):
                bounds.append(bound(row, dict(zip(relieved, others, strict=True))))
    except Interrupted:
        raise Interrupted(usual) from None
    return usual.with_columns(
        bound=pl.Series([one.part for one in bounds], dtype=pl.String),
        bound_gain=pl.Series([one.gain for one in bounds], dtype=pl.Float64),
    )
