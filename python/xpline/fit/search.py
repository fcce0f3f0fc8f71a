"""The search for values: robust least squares within bounds, by scipy.

Least squares, because each measured row says how far off it is: a change of each parameter in turn shows which rows it
moves, and a step follows for all of them together. An optimiser that sees only the sum needs many times the runs.
Near to where that was looked at, the slopes are corrected by what each step shows (Broyden's update), without
further runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from xpline.fit.objective import SOFT, misfit
from xpline.fit.parameters import Parameter

#: How far a parameter is moved to see its effect, as a share of the way between its bounds: enough to stand out from
#: the noise of bounded runs.
PROBE = 0.05

#: How far a parameter may have moved, as a share of the way between its bounds, before slopes are measured anew.
FAR = 0.1

#: The search starts at least this far inside of the bounds, where the method takes short steps only.
INSIDE = 0.02

#: The search ends when a step improves the misfit by less than this share, or moves the parameters by less than
#: this share of their ranges.
TOLERANCE = 2e-3

Vector = tuple[float, ...]

#: Deviations for each of several (values, parameter moved); NaN where rows do not tell about that parameter. Without
#: a parameter moved (None), all rows are wanted.
Deviations = Callable[[Sequence[tuple[Vector, Parameter | None]]], list[np.ndarray]]


@dataclass(frozen=True)
class Found:
    """The best values seen, in the order of the parameters, their misfit, and how many runs of the sample it took."""

    values: Vector
    misfit: float
    runs: int
    #: Whether the search ended by itself, not by its budget.
    converged: bool


class _OutOfBudget(Exception):  # noqa: N818 (no error: it ends the search)
    pass


def search(parameters: Sequence[Parameter], start: Vector, deviations: Deviations, budget: int) -> Found:
    """Move ``start`` to where the misfit is least, in at most ``budget`` runs of the sample."""
    from scipy.optimize import least_squares  # half a second that other commands do not need

    run = _Search(parameters, deviations, budget)
    positions = [parameter.position(value) for parameter, value in zip(parameters, start, strict=True)]
    try:
        least_squares(
            run.at,
            np.clip(positions, INSIDE, 1 - INSIDE),
            jac=run.slopes_at,
            bounds=(0.0, 1.0),
            loss="soft_l1",
            f_scale=SOFT,
            ftol=TOLERANCE,
            xtol=TOLERANCE,
            gtol=1e-10,  # no slope at all
        )
        converged = True
    except _OutOfBudget:
        converged = False
    return Found(*run.best, run.runs, converged)


def probes(parameters: Sequence[Parameter], values: Vector) -> list[Vector]:
    """The values with each parameter in turn moved a little."""
    moved = [_moved(parameter, value) for parameter, value in zip(parameters, values, strict=True)]
    return [(*values[:i], value, *values[i + 1 :]) for i, value in enumerate(moved)]


class _Search:
    """What one search has seen."""

    def __init__(self, parameters: Sequence[Parameter], deviations: Deviations, budget: int) -> None:
        self._parameters = parameters
        self._deviations = deviations
        self._budget = budget
        self._seen: dict[Vector, np.ndarray] = {}
        self._slopes: np.ndarray | None = None
        self._measured_at = self._last_position = self._last = np.empty(0)
        self.runs = 0
        self.best: tuple[Vector, float] = ((), np.inf)

    def at(self, positions: np.ndarray) -> np.ndarray:
        """The deviations at these positions of the parameters."""
        values = self._values(positions)
        if values not in self._seen:
            self._spend(1)
            (self._seen[values],) = self._deviations([(values, None)])
            found = misfit(self._seen[values])
            if found < self.best[1]:
                self.best = (values, found)
        return self._seen[values].copy()  # scipy scales what it is given in place

    def slopes_at(self, positions: np.ndarray) -> np.ndarray:
        """How the deviations change with each position (a column each); not at all in rows that do not tell."""
        values = self._values(positions)
        here, position = self.at(positions), self._positions(values)
        if self._slopes is None or np.abs(position - self._measured_at).max() > FAR:
            self._spend(len(self._parameters))
            self._slopes = self._measure(values, here)
            self._measured_at = position
        else:
            step = position - self._last_position
            if step.any():
                surprise = here - self._last - self._slopes @ step
                self._slopes = self._slopes + np.outer(surprise, step) / (step @ step)
        self._last_position, self._last = position, here
        return self._slopes.copy()

    def _measure(self, values: Vector, here: np.ndarray) -> np.ndarray:
        """The slopes, from a run with each parameter moved."""
        moved = probes(self._parameters, values)
        there = self._deviations(list(zip(moved, self._parameters, strict=True)))
        columns = [
            (there[i] - here) / (parameter.position(moved[i][i]) - parameter.position(values[i]))
            for i, parameter in enumerate(self._parameters)
        ]
        return np.nan_to_num(np.column_stack(columns))

    def _positions(self, values: Vector) -> np.ndarray:
        return np.array([parameter.position(one) for parameter, one in zip(self._parameters, values, strict=True)])

    def _values(self, positions: np.ndarray) -> Vector:
        return tuple(parameter.value(one) for parameter, one in zip(self._parameters, positions, strict=True))

    def _spend(self, runs: int) -> None:
        if self.runs and self.runs + runs > self._budget:
            raise _OutOfBudget
        self.runs += runs


def _moved(parameter: Parameter, value: float) -> float:
    """The value a probe away, on the side with more room."""
    position = parameter.position(value)
    sign = 1 if position <= 0.5 else -1
    moved = parameter.value(position + sign * PROBE)
    if moved != value:
        return moved
    if parameter.integer:
        return value + sign
    return parameter.high if sign > 0 else parameter.low
