"""Values as platform files write them, as numbers of a unit and back."""

from __future__ import annotations

import re

#: Units that stand for the same quantity, with what each is worth.
_FAMILIES: tuple[dict[str, float], ...] = (
    {"": 1.0},
    {"ps": 1.0, "ns": 1e3, "us": 1e6, "ms": 1e9},
    {"B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30},
    {"MHz": 1.0, "GHz": 1e3},
    {"mW": 1.0, "W": 1e3},
)

_QUANTITY = re.compile(r"([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)\s*([A-Za-z]*)")

#: Digits that a fitted value keeps: finer than any measurement, and short to read.
DIGITS = 4


def parse(text: object) -> tuple[float, str] | None:
    """The number and the unit of a value, or None when it is no quantity.

    >>> parse('"1.2us"'), parse(16), parse("random")
    ((1.2, 'us'), (16.0, ''), None)
    """
    match = _QUANTITY.fullmatch(str(text).strip().strip('"').strip())
    if match is None or isinstance(text, bool) or not any(match[2] in family for family in _FAMILIES):
        return None
    return float(match[1]), match[2]


def convert(number: float, unit: str, to: str) -> float | None:
    """The same quantity in another unit, or None when the units do not stand for the same quantity.

    >>> convert(1.2, "us", "ns"), convert(1.2, "us", "KiB")
    (1200.0, None)
    """
    for family in _FAMILIES:
        if unit in family and to in family:
            return number if unit == to else number * family[unit] / family[to]
    return None


def rounded(number: float, integer: bool) -> float:
    """The number as a platform file would hold it: whole, or to four digits.

    >>> rounded(36.12345, integer=False), rounded(15.6, integer=True)
    (36.12, 16.0)
    """
    return float(round(number)) if integer else float(f"{number:.{DIGITS}g}")


def render(number: float, unit: str) -> str:
    """A value as it is set on the command line and shown.

    >>> render(36.12, "ns"), render(16.0, "")
    ('36.12ns', '16')
    """
    return f"{number:.12g}{unit}"


def to_toml(text: str) -> str:
    """A rendered value as a platform file holds it: in quotes where it has a unit.

    >>> to_toml("36.12ns"), to_toml("16")
    ('"36.12ns"', '16')
    """
    return f'"{text}"' if text[-1].isalpha() else text
