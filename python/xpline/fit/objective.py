"""What a fit makes small: the *misfit*, a robust mean of how far predictions are from measurements.

For each configuration, the deviation of its bandwidth is ln(predicted / measured), beyond what the instrument resolves,
and that of its EWR, where it is scored, is the difference times ``EWR_WEIGHT``. The misfit is the mean over
configurations of the sum of both, each softened:

    s(d) = SOFT (sqrt(1 + (d / SOFT)²) - 1)

Small deviations count by their square, so that the search has a slope to follow; large ones by their size, so that
rows which the model cannot get right do not pull at the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from xpline.fit.targets import Target

#: Deviations well below this count by their square, well above by their size.
SOFT = 0.1

#: An EWR that is off by 0.05 weighs as much as a bandwidth that is off by 10 %.
EWR_WEIGHT = 2.0


@dataclass(frozen=True)
class Predicted:
    """MiB/s and EWR of each target; NaN where it was not run, or where there is no EWR."""

    bandwidth: np.ndarray
    ewr: np.ndarray


class Objective:
    """The measured side of some targets, to hold predictions against."""

    def __init__(self, targets: Sequence[Target]) -> None:
        self._measured = np.array([target.measured for target in targets])
        self._resolution = np.array([target.resolution for target in targets])
        self._ewr = np.array([np.nan if target.ewr is None else target.ewr for target in targets])

    def deviations(self, predicted: Predicted) -> np.ndarray:
        """Deviations of all bandwidths, then of all EWRs; 0 where no EWR is scored, NaN where a target was not run."""
        off = predicted.bandwidth - self._measured
        beyond = np.sign(off) * np.maximum(np.abs(off) - self._resolution, 0)
        least = self._measured * 1e-3  # keeps the logarithm finite
        bandwidth = np.log(np.maximum(self._measured + beyond, least) / self._measured)
        ewr = np.where(np.isnan(self._ewr), 0.0, EWR_WEIGHT * self._ewr_off(predicted))
        return np.concatenate([bandwidth, np.where(np.isnan(bandwidth), np.nan, ewr)])

    def errors(self, predicted: Predicted) -> np.ndarray:
        """Errors of the bandwidths as ``xpline validate`` has them (see :mod:`xpline.score`)."""
        off = np.abs(predicted.bandwidth - self._measured) - self._resolution
        return np.maximum(off, 0) / self._measured

    def ewr_errors(self, predicted: Predicted) -> np.ndarray:
        """Errors of the EWRs, in the same way; NaN where none is scored."""
        return np.abs(self._ewr_off(predicted))

    def _ewr_off(self, predicted: Predicted) -> np.ndarray:
        """How far EWRs are off: by 1 where one was measured and none is predicted, NaN where none is scored."""
        return np.where(np.isnan(predicted.ewr) & ~np.isnan(self._ewr), 1.0, predicted.ewr - self._ewr)


def misfit(deviations: np.ndarray) -> float:
    """The misfit of deviations as :meth:`Objective.deviations` gives them.

    >>> round(misfit(np.array([0.5, 0.0])), 2)  # one configuration, 50 % off and without EWR
    0.41
    """
    return float(_soft(deviations).sum() / (len(deviations) / 2))


def _soft(deviations: np.ndarray) -> np.ndarray:
    return SOFT * (np.sqrt(1 + (deviations / SOFT) ** 2) - 1)
