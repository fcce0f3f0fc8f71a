"""Programs on the modelled memory: run an unmodified one, or a recorded one, and see where its time and traffic go.

>>> from xpline.run import run_program
>>> run = run_program(["./app", "--size", "1M"], pmem=["/mnt/pmem"], compare=["dram"])  # doctest: +SKIP
>>> print(run.ratios())  # doctest: +SKIP
"""

from __future__ import annotations

from xpline.run.lines import Line
from xpline.run.outcome import CAUSES, Outcome, Run
from xpline.run.program import run_program
from xpline.run.recorded import rerun, run_recorded, timeline_of

__all__ = ["CAUSES", "Line", "Outcome", "Run", "rerun", "run_program", "run_recorded", "timeline_of"]
