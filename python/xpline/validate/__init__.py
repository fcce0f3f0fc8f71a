"""The model run at every row of a published sweep, and how far off it is.

outcome = validate("OptaneStudy", sample=100)
print(outcome.score.total()["median"])
"""

from xpline.validate.ablation import Ablation, Verdict
from xpline.validate.run import Outcome, validate
from xpline.validate.worst import Worst

__all__ = ["Ablation", "Outcome", "Verdict", "Worst", "validate"]
