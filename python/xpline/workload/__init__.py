"""Workload files, as PerMA-Bench writes them: read from YAML, run on any platform.

>>> from pathlib import Path
>>> _ = Path("hash.yaml").write_text('''
... lookup:
...   matrix:
...     number_threads: [1, 4]
...   args:
...     exec_mode: custom
...     custom_operations: "rp_512,rp_512"
...     memory_range: 1G
... ''')
>>> cases = read("hash.yaml")
>>> [case.title for case in cases]
['lookup: number_threads=1', 'lookup: number_threads=4']
>>> one, four = run("optane", cases)["operations_s"]
>>> one < four
True
"""

from xpline.workload.case import Case
from xpline.workload.job import Job
from xpline.workload.notes import ended_early, without_effect
from xpline.workload.read import read
from xpline.workload.results import as_json
from xpline.workload.run import run

__all__ = ["Case", "Job", "as_json", "ended_early", "read", "run", "without_effect"]
