"""What a fit found, and how far its error on configurations that it has not seen is from that on those it has."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

#: Errors below this are no better than it: no measurement is.
LEAST = 1e-3

#: Resamples behind an interval.
_RESAMPLES = 1000


@dataclass(frozen=True)
class Fitted:
    """A parameter, with its values as text."""

    key: str
    before: str
    after: str
    low: str
    high: str
    #: Whether the value ended at one of its bounds, so that the best one may lie beyond.
    at_bound: bool
    #: By how many percent a bandwidth that tells about the value changes, on average, when the value changes by 1 %;
    #: None for a value of 0.
    sensitivity: float | None
    #: The values of the fits without each fold: their spread is how well the data determine the value.
    without_fold: list[str]


@dataclass(frozen=True)
class Errors:
    """Errors over configurations, as ``xpline validate`` has them."""

    n: int
    median: float
    mean: float
    p90: float
    #: Mean EWR error, and over how many.
    ewr_n: int
    ewr_mean: float | None


@dataclass(frozen=True)
class Fold:
    """The configurations of one fold: their errors before the fit, under the fits that saw them, and under the one that
    did not; and the errors of what that one was fitted to."""

    before: Errors
    fitted: Errors
    left_out: Errors
    #: Mean error as left out over mean error as fitted.
    ratio: float
    others_before: Errors
    others: Errors


@dataclass(frozen=True)
class Ratio:
    """Errors of the same configurations as left out over those as fitted, with 95 % intervals."""

    mean: float
    mean_interval: tuple[float, float]
    median: float
    median_interval: tuple[float, float]

    @property
    def within_a_tenth(self) -> bool:
        """Whether the mean error on left-out configurations is at most a tenth above that on fitted ones."""
        return self.mean <= 1.1


@dataclass(frozen=True)
class Outcome:
    """The result of :func:`xpline.fit.fit`."""

    dataset: str
    platform: str
    files: list[Path]
    parameters: list[Fitted]
    #: Configurations that could tell, and how many of them were sampled.
    available: int
    #: Errors of the sample before, and with the values written, and the misfit that was made small.
    before: Errors
    after: Errors
    misfit_before: float
    misfit_after: float
    folds: list[Fold]
    #: Every configuration as fitted (under the fits that saw it) and as left out (under the one that did not).
    fitted: Errors
    left_out: Errors
    ratio: Ratio
    #: Runs of the sample that each fit took, the one to the whole sample first, and whether each ended by itself.
    runs: list[int]
    converged: list[bool]
    #: Parameters without rows, and rows that are not used, each with the reason.
    notes: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain data, for JSON."""
        return asdict(self) | {"files": [str(path) for path in self.files], "within_a_tenth": self.ratio.within_a_tenth}


class Sides:
    """Errors of one kind by configuration: before, and under the fit without each fold (a row each).

    >>> sides = Sides(np.array([0, 1, 2]), np.zeros(3), np.array([[3.0, 1.0, 1.0], [2.0, 4.0, 2.0], [0.0, 0.0, 5.0]]))
    >>> sides.left_out.tolist(), sides.fitted.tolist()
    ([3.0, 4.0, 5.0], [[2.0, 0.0], [1.0, 0.0], [1.0, 2.0]])
    """

    def __init__(self, fold_of: np.ndarray, before: np.ndarray, by_fold: np.ndarray) -> None:
        count, places = len(by_fold), np.arange(len(fold_of))
        self.before = before
        self.by_fold = by_fold
        #: The error of each configuration under the fit that did not see it.
        self.left_out = by_fold[fold_of, places]
        #: The errors of each configuration (a row each) under the fits that saw it.
        others = np.array([[one for one in range(count) if one != fold] for fold in range(count)])
        self.fitted = by_fold[others[fold_of], places[:, None]]


def errors(bandwidth: np.ndarray, ewr: np.ndarray) -> Errors:
    """The summary of errors by configuration; EWR errors are NaN where none is scored."""
    scored = ewr[~np.isnan(ewr).reshape(len(ewr), -1).any(axis=1)]
    return Errors(
        n=len(bandwidth),
        median=float(np.median(bandwidth)),
        mean=float(bandwidth.mean()),
        p90=float(np.quantile(bandwidth, 0.9)),
        ewr_n=len(scored),
        ewr_mean=float(scored.mean()) if len(scored) else None,
    )


def fold(mask: np.ndarray, number: int, bandwidth: Sides, ewr: Sides) -> Fold:
    """The account of fold ``number``, the configurations in ``mask``."""
    fitted = errors(bandwidth.fitted[mask], ewr.fitted[mask])
    left_out = errors(bandwidth.left_out[mask], ewr.left_out[mask])
    return Fold(
        before=errors(bandwidth.before[mask], ewr.before[mask]),
        fitted=fitted,
        left_out=left_out,
        ratio=round(float(_over(left_out.mean, fitted.mean)), 4),
        others_before=errors(bandwidth.before[~mask], ewr.before[~mask]),
        others=errors(bandwidth.by_fold[number, ~mask], ewr.by_fold[number, ~mask]),
    )


def ratio(fitted: np.ndarray, left_out: np.ndarray) -> Ratio:
    """How the errors of the same configurations compare: ``left_out`` has one for each, ``fitted`` a row for each.

    Both sides hold every configuration equally often, so that easy and hard ones weigh the same, and what differs is
    whether the fit has seen them. The intervals are a bootstrap over configurations.

    >>> ratio(np.array([[0.1, 0.1], [0.2, 0.2]]), np.array([0.11, 0.22])).mean_interval
    (1.1, 1.1)
    """
    drawn = np.random.default_rng(0).integers(len(left_out), size=(_RESAMPLES, len(left_out)))
    found = []
    for statistic in (np.mean, np.median):
        resampled = [_over(statistic(left_out[one]), statistic(fitted[one])) for one in drawn]
        low, high = (round(float(bound), 4) for bound in np.quantile(resampled, [0.025, 0.975]))
        found += [round(float(_over(statistic(left_out), statistic(fitted))), 4), (low, high)]
    return Ratio(*found)


def _over(above: float, below: float) -> float:
    """The ratio of two errors, neither taken as less than LEAST."""
    return max(above, LEAST) / max(below, LEAST)
