"""What has been published about real memory, claim by claim, and whether the model agrees.

A claim is a line of ``reference/claims.csv``. To cover one, add an entry to ``COVERED`` in the module of its family:
the function that reads the model's value off the sweeps, wrapped in the rule that judges it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from importlib import resources

from xpline.claims import bandwidth, ewr, instructions, latency, memories, sockets, tail
from xpline.claims.rules import Claim, Judged, not_covered
from xpline.sweeps import Results

__all__ = ["Claim", "Judged", "covered", "judge", "read_claims"]

#: The families of claims, in the order of the study.
_FAMILIES = (latency, tail, bandwidth, ewr, instructions, sockets, memories)


def read_claims() -> list[Claim]:
    """Every published claim.

    >>> next(claim.value for claim in read_claims() if claim.id == "ewr-64")
    '0.25'
    """
    with resources.files(__name__).joinpath("claims.csv").open(newline="") as file:
        return [Claim(**line) for line in csv.DictReader(file)]


def covered() -> set[str]:
    """The claims that the model can be asked about."""
    return {name for family in _FAMILIES for name in family.COVERED}


def judge(claims: Iterable[Claim], results: Results) -> list[Judged]:
    """Put the model's value beside each published one."""
    judges = {name: rule for family in _FAMILIES for name, rule in family.COVERED.items()}
    return [judges.get(claim.id, not_covered)(claim, results) for claim in claims]
