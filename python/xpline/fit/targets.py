"""What a fit aims at: measured configurations, a sample of them, and folds that never split one."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from xpline import dataset
from xpline.cases import Case
from xpline.score import RESOLUTION, SLICES, score, scored_rows


@dataclass(frozen=True)
class Target:
    """A configuration that was measured, with the medians over its repeats."""

    file: str
    #: The columns that set the experiment; rows that agree in all of them are repeats.
    configuration: dict[str, str | None]
    #: The case of each of its rows; they differ only where versions of the benchmark do.
    cases: tuple[Case, ...]
    #: MiB/s, and what a reading of it is good to.
    measured: float
    resolution: float
    #: Where EWR is scored.
    ewr: float | None

    @property
    def platform(self) -> str:
        """The name of the platform that it runs on."""
        return self.cases[0].platform

    @property
    def stratum(self) -> tuple[str, ...]:
        """The slice of the data set that it belongs to."""
        known = self.configuration | {"file": self.file}
        return tuple(known.get(column) or "" for column in SLICES)


def targets(tables: dataset.Tables, refused: dict[Case, str]) -> tuple[list[Target], Counter[str]]:
    """The configurations that are scored (see :mod:`xpline.score`) and can run, and why others cannot, by rows.

    ``refused`` names the cases that a platform cannot run, with the reason.
    """
    planned = iter(dataset.plan(tables))
    cases: dict[tuple[str, ...], list[Case]] = defaultdict(list)
    reasons: Counter[str] = Counter()
    for file, table in tables.items():
        counted = set(scored_rows(file, table)["line"])
        for row in table.iter_rows(named=True):
            one = next(planned)
            reason = one.reason or refused.get(one.case)
            if reason:
                reasons[reason] += 1
            elif row["line"] in counted:
                cases[_name(file, row)].append(one.case)
    nothing = pl.DataFrame(schema={"__key__": pl.String, "throughput": pl.Float64, "ewr": pl.Float64})
    found = []
    for point in score(tables, nothing).points.iter_rows(named=True):
        file = point["file"]
        if of_point := cases.get(_name(file, point)):
            configuration = {column: point[column] for column in dataset.CONFIGURATION[file]}
            configuration["threads"] = str(configuration["threads"])
            resolution = RESOLUTION * point["threads"]
            found.append(
                Target(file, configuration, tuple(of_point), point["measured"], resolution, point["ewr_measured"])
            )
    return found, reasons


def _name(file: str, row: dict[str, object]) -> tuple[str, ...]:
    return (file, *(str(row[column]) for column in dataset.CONFIGURATION[file]))


def sample(targets: Sequence[Target], count: int, seed: int) -> list[Target]:
    """``count`` of the targets, each slice in proportion; always the same ones for a seed."""
    ordered = _stratified(targets, seed)
    if count >= len(ordered):
        return ordered
    return [ordered[place * len(ordered) // count] for place in range(count)]


def folds(targets: Sequence[Target], count: int) -> list[int]:
    """The fold of each target, from 0 to ``count - 1``, in turn: sampled targets spread each slice evenly over them.

    Targets that share a case stay together: running one of them is running the other.
    """
    leaders: dict[Case, Case] = {}

    def leader(case: Case) -> Case:
        while leaders.setdefault(case, case) != case:
            case = leaders[case]
        return case

    for target in targets:
        first = leader(target.cases[0])
        for case in target.cases:
            leaders[leader(case)] = first
    groups = dict.fromkeys(leader(target.cases[0]) for target in targets)
    fold = {group: place % count for place, group in enumerate(groups)}
    return [fold[leader(target.cases[0])] for target in targets]


def _stratified(targets: Iterable[Target], seed: int) -> list[Target]:
    """Slice by slice, and shuffled within each."""
    ordered = sorted(targets, key=lambda target: (target.file, *map(str, target.configuration.values())))
    random.Random(seed).shuffle(ordered)
    return sorted(ordered, key=lambda target: target.stratum)
