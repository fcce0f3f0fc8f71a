"""What a fit found, and how far its error on configurations that it has not seen is from that on those it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

Number = TypeVar("Number", float, np.ndarray)

#: Errors below this are no better than it: no measurement is.
LEAST = 1e-3

#: Resamples behind an interval.
_RESAMPLES = 2000


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
    """A fit without one fold: errors on what it was fitted to, and on what it was not, before and after."""

    fitted_before: Errors
    fitted: Errors
    left_out_before: Errors
    left_out: Errors
    ratio: float


@dataclass(frozen=True)
class Ratio:
    """Error on left-out configurations over that on fitted ones; the interval is that of the mean, 95 %."""

    mean: float
    low: float
    high: float
    median: float

    @property
    def within_a_tenth(self) -> bool:
        """Whether the error on left-out configurations is at most a tenth above that on fitted ones."""
        return max(self.mean, self.median) <= 1.1


@dataclass(frozen=True)
class Outcome:
    """The result of :func:`xpline.fit.fit`."""

    dataset: str
    platform: str
    files: list[Path]
    parameters: list[Fitted]
    #: Configurations that could tell, and how many of them were sampled.
    available: int
    #: Errors of the sample before and after the fit to all of it, and the misfit that was made small.
    before: Errors
    after: Errors
    misfit_before: float
    misfit_after: float
    folds: list[Fold]
    #: Every configuration as fitted (on average over the fits that saw it) and as left out (by the fit that did not).
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


def errors(bandwidth: np.ndarray, ewr: np.ndarray) -> Errors:
    """The summary of errors by configuration; EWR errors are NaN where none is scored."""
    ewr = ewr[~np.isnan(ewr)]
    return Errors(
        n=len(bandwidth),
        median=float(np.median(bandwidth)),
        mean=float(bandwidth.mean()),
        p90=float(np.quantile(bandwidth, 0.9)),
        ewr_n=len(ewr),
        ewr_mean=float(ewr.mean()) if len(ewr) else None,
    )


def across(fold_of: np.ndarray, by_fold: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The error of each configuration as fitted and as left out, from the errors under the fit without each fold.

    >>> fitted, left_out = across(np.array([0, 1]), np.array([[0.3, 0.1], [0.2, 0.4]]))
    >>> fitted.tolist(), left_out.tolist()
    ([0.2, 0.1], [0.3, 0.4])
    """
    is_left_out = fold_of == np.arange(len(by_fold))[:, None]
    seen = np.where(is_left_out, 0.0, by_fold).sum(axis=0) / (len(by_fold) - 1)
    return seen, by_fold[fold_of, np.arange(len(fold_of))]


def ratio(fitted: np.ndarray, left_out: np.ndarray) -> Ratio:
    """How the errors of the same configurations compare.

    Both arrays hold every configuration once, so that easy and hard ones weigh the same on both sides, and
    what differs is whether the fit has seen them. The interval is a bootstrap over configurations.

    >>> ratio(np.array([0.1, 0.2]), np.array([0.11, 0.22]))
    Ratio(mean=1.1, low=1.1, high=1.1, median=1.1)
    """
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(fitted), size=(_RESAMPLES, len(fitted)))
    resampled = _over(left_out[drawn].mean(axis=1), fitted[drawn].mean(axis=1))
    low, high = np.quantile(resampled, [0.025, 0.975])
    means, medians = _over(left_out.mean(), fitted.mean()), _over(np.median(left_out), np.median(fitted))
    return Ratio(*(round(float(value), 4) for value in (means, low, high, medians)))


def fold(is_left_out: np.ndarray, before: Sequence[np.ndarray], after: Sequence[np.ndarray]) -> Fold:
    """The errors of one fold; ``before`` and ``after`` are those of bandwidth and EWR."""
    parts = [errors(*(one[mask] for one in which)) for mask in (~is_left_out, is_left_out) for which in (before, after)]
    fitted_before, fitted, left_out_before, left_out = parts
    return Fold(fitted_before, fitted, left_out_before, left_out, round(float(_over(left_out.mean, fitted.mean)), 4))


def _over(above: Number, below: Number) -> Number:
    """The ratio of two errors, neither taken as less than LEAST."""
    return np.maximum(above, LEAST) / np.maximum(below, LEAST)
