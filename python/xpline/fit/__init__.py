"""Calibration: values of a platform fitted to measurements, and the error on measurements left out of the fit.

    outcome = fit("OptaneStudy", ["optane"], "mine.toml", only=["optane.media"])
    print(outcome.ratio.value)

How it goes:

1. A stratified sample of the measured configurations is divided into folds, never within a configuration
   (:mod:`~xpline.fit.targets`).
2. For the whole sample, and for the sample without each fold in turn, a robust least-squares search moves the values
   within their bounds (:mod:`~xpline.fit.search`, :mod:`~xpline.fit.objective`).
3. The values, of all searches, that fit the whole sample best go into platform files (:mod:`~xpline.fit.write`); the
   searches without a fold tell the error on what a fit has not seen (:mod:`~xpline.fit.outcome`).
"""

from xpline.fit.outcome import Outcome
from xpline.fit.parameters import Parameter, read_parameters
from xpline.fit.run import fit

__all__ = ["Outcome", "Parameter", "fit", "read_parameters"]
