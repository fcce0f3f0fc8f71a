"""The rules by which a claim holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from xpline.sweeps import KIB, MIB, Results

#: A published latency holds when the model is within 10 %, another number within 15 %, an EWR within 0.05.
LATENCY_TOLERANCE = 0.10
NUMBER_TOLERANCE = 0.15
EWR_TOLERANCE = 0.05


@dataclass(frozen=True)
class Claim:
    """A line of claims.csv: what ``source`` says about ``quantity`` of ``system``."""

    id: str
    source: str
    system: str
    claim: str
    quantity: str
    value: str
    unit: str
    note: str

    @property
    def disputed(self) -> bool:
        """Whether the sources disagree, so that the claim is shown and not counted."""
        return self.note.startswith("sources disagree")

    @property
    def published(self) -> str:
        """The published value with its unit, for people."""
        if self.quantity == "size" and self.unit == "B":
            return ", ".join(size(int(value)) for value in self.value.split(";"))
        unit = "" if self.unit in ("1", "") else f" {self.unit}"
        return self.value.replace("..", " to ").replace(";", "; ") + unit


#: ``given`` marks what the platform file states and no run shows, ``disputed`` what sources disagree about.
Status = Literal["holds", "fails", "disputed", "given", "not covered yet"]


@dataclass(frozen=True)
class Judged:
    """A claim with what the model says: its value, how far off it is, and what was compared where that needs words."""

    claim: Claim
    status: Status
    model: str = ""
    error: str = ""
    detail: str = ""


Judge = Callable[[Claim, Results], Judged]


def not_covered(claim: Claim, results: Results) -> Judged:
    """A claim about something that is not modelled yet."""
    return Judged(claim, "not covered yet")


def number(model: Callable[[Results], float], detail: str = "", unit: str | None = None) -> Judge:
    """A number: close enough by the tolerance of its quantity. ``unit`` is the model's, where it writes another."""

    def judge(claim: Claim, results: Results) -> Judged:
        published, value = float(claim.value), model(results)
        if claim.quantity == "ewr":
            holds, error = abs(value - published) <= EWR_TOLERANCE, f"{value - published:+.3f}"
        else:
            tolerance = LATENCY_TOLERANCE if claim.quantity == "latency" else NUMBER_TOLERANCE
            holds, error = abs(value - published) <= tolerance * published, f"{value / published - 1:+.1%}"
        shown = "" if claim.unit == "1" else f" {unit or claim.unit}"
        return _judged(claim, holds, f"{_digits(value)}{shown}", error, detail)

    return judge


def more_than(model: Callable[[Results], float], detail: str = "") -> Judge:
    """A bound that the sources give as ">30": the model's value is above it."""

    def judge(claim: Claim, results: Results) -> Judged:
        value, bound = model(results), float(claim.value.lstrip(">"))
        return _judged(claim, value > bound, f"{_digits(value)} {claim.unit}", f"{value / bound - 1:+.1%}", detail)

    return judge


def step(model: Callable[[Results], int | None], steps: Sequence[int], detail: str = "") -> Judge:
    """A place in a sweep: within one step of it. None is the step before the first."""

    def judge(claim: Claim, results: Results) -> Judged:
        value = model(results)
        off = steps_between(steps, int(claim.value), value)
        shown = f"under {_with_unit(claim, steps[0])}" if value is None else _with_unit(claim, value)
        return _judged(claim, off <= 1, shown, _steps(off), detail)

    return judge


def trend(model: Callable[[Results], tuple[bool, str]], detail: str = "") -> Judge:
    """A statement without a number of its own: true or false, with the values that say so."""

    def judge(claim: Claim, results: Results) -> Judged:
        holds, value = model(results)
        return _judged(claim, holds, value, "", detail)

    return judge


def given(model: Callable[[Results], str], detail: str = "set in the platform file") -> Judge:
    """A parameter that the platform file states: shown, never counted."""

    def judge(claim: Claim, results: Results) -> Judged:
        return Judged(claim, "given", model(results), "", detail)

    return judge


def steps_between(steps: Sequence[int], published: int, value: int | None) -> int:
    """How many steps of a sweep lie between a published place and another."""
    return abs(steps.index(published) - (-1 if value is None else steps.index(value)))


def last_where(holds: dict[int, bool]) -> int | None:
    """The largest step at which something is so, or None where it never is."""
    return max((step for step, so in holds.items() if so), default=None)


def size(value: int) -> str:
    """A size for people.

    >>> size(24576)
    '24 KiB'
    """
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if value >= unit and value % unit == 0:
            return f"{value // unit} {name}"
    return f"{value} B"


def _judged(claim: Claim, holds: bool, model: str, error: str, detail: str) -> Judged:
    status: Status = "disputed" if claim.disputed else "holds" if holds else "fails"
    return Judged(claim, status, model, error, "; ".join(text for text in (detail, claim.note) if text))


def _digits(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) < 100 else f"{value:.1f}"


def _with_unit(claim: Claim, value: int) -> str:
    return size(value) if claim.unit == "B" else f"{value} {claim.unit}"


def _steps(off: int) -> str:
    return "0 steps" if off == 0 else f"{off} step{'s' if off > 1 else ''}"
