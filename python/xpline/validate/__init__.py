"""The model run at every row of a published sweep, and how far off it is.

>>> from xpline.validate import validate  # doctest: +SKIP
>>> outcome = validate("OptaneStudy", sample=100)  # doctest: +SKIP
>>> outcome.score.total()["median"]  # doctest: +SKIP
"""

from xpline.validate.run import Outcome, validate

__all__ = ["Outcome", "validate"]
