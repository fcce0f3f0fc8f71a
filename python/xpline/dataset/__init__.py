"""The measurements of a real machine, published with the FAST'20 study of Optane, read in their own layout.

A data set is a folder with ``data/bandwidth.csv``, ``data/flush.csv``, ``data/alignment.csv`` (the sweep) and
``graphs/*.csv`` (what the figures of the paper show). Any subset of files and rows will do: what is there is used.

    tables = dataset.read_tables("OptaneStudy")
    cases = {row.case for row in dataset.plan(tables) if row.case}
"""

from xpline.dataset.graphs import read_graph, read_scatter
from xpline.dataset.medians import Measured, medians
from xpline.dataset.plan import PlannedRow, plan
from xpline.dataset.read import read_tables
from xpline.dataset.results import is_results
from xpline.dataset.tables import CONFIGURATION, Tables, select

__all__ = [
    "CONFIGURATION",
    "Measured",
    "PlannedRow",
    "Tables",
    "is_results",
    "medians",
    "plan",
    "read_graph",
    "read_scatter",
    "read_tables",
    "select",
]
