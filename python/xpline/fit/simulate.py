"""Predictions for targets under values of the parameters: bounded runs of the model, each kept on disk once done."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from xpline import cases
from xpline.cases import Case, Platforms
from xpline.fit.members import Members
from xpline.fit.objective import Predicted
from xpline.fit.targets import Target
from xpline.validate.cache import Cache
from xpline.validate.study import read_ewr

#: The longest that a point may run, in requests: a tenth of the usual, which moves one point in ten by over 1 %.
MAX_REQUESTS = 1 << 16

#: Values of parameters as text, by key.
Values = Mapping[str, str]


class Simulator:
    """Runs targets on the members of a fit. What has run before, by this or by an interrupted run, is not run again."""

    def __init__(
        self,
        members: Members,
        keys: Sequence[str],
        platforms: Platforms,
        cache: Cache,
        jobs: int | None,
        on_run: Callable[[], None],
    ) -> None:
        self._shared = {
            member.name: [key for key in keys if member.name in members.sharing(key)] for member in members.all
        }
        self._fixed = {member.name: _overrides(dict(member.fixed)) for member in members.all}
        self._platforms = platforms
        self._cache = cache
        self._jobs = jobs
        self._on_run = on_run

    def predict(self, asked: Sequence[tuple[Values, Sequence[Target | None]]]) -> list[Predicted]:
        """Predictions for each set of values; of targets that are None there are none (NaN)."""
        planned = [
            [[self._case(case, values) for case in target.cases] if target else [] for target in targets]
            for values, targets in asked
        ]
        wanted = dict.fromkeys(case for one in planned for cases in one for case in cases)
        cases.run((case for case in wanted if self._cache.get(case) is None), self._platforms, self._jobs, self._keep)
        return [Predicted(*(self._read(one, read) for read in (_bandwidth, read_ewr))) for one in planned]

    def _keep(self, case: Case, row: cases.Row) -> None:
        self._cache.add(case, row)
        self._on_run()

    def _case(self, case: Case, values: Values) -> Case:
        fitted = {key: values[key] for key in self._shared[case.platform] if key in values}
        point = json.dumps(json.loads(case.point) | {"max_requests": MAX_REQUESTS}, sort_keys=True)
        return replace(case, overrides=(*case.overrides, *self._fixed[case.platform], *_overrides(fitted)), point=point)

    def _read(self, planned: list[list[Case]], read: Callable[[cases.Row], float | None]) -> np.ndarray:
        """The median over the cases of each target, as it is over the rows of a configuration."""
        found = ([read(self._cache.get(case)) for case in cases] for cases in planned)
        known = ([value for value in values if value is not None] for values in found)
        return np.array([median(values) if values else np.nan for values in known])


def _bandwidth(row: cases.Row) -> float | None:
    return row["bandwidth_mib_s"]


def _overrides(values: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{key}={value}" for key, value in values.items())
