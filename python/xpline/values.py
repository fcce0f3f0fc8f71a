"""Lists and ranges of values, as a sweep is written: ``64..4096``, ``1,2,4``, ``64,1KiB..8KiB``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar

from xpline.errors import XplineError

T = TypeVar("T")

#: Bytes of each unit that a size may be written with.
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

#: One value, several, or text that lists them.
Numbers = int | str | Iterable[int | str]
Words = str | Iterable[str]

_NUMBER = re.compile(r"([0-9]{1,19})\s*([A-Za-z]*)")
_LARGEST = 1 << 63


def sizes(values: Numbers, name: str) -> list[int]:
    """Sizes in bytes, each with an optional unit (B, KiB, MiB, GiB); ``name`` is what messages call them.

    >>> sizes("64..1KiB, 4096", "size")
    [64, 128, 256, 512, 1024, 4096]
    """
    return _numbers(values, name, UNITS)


def counts(values: Numbers, name: str) -> list[int]:
    """Whole numbers; ``name`` is what messages call them.

    A range doubles from its start and ends with its end:

    >>> counts("1..24", "threads")
    [1, 2, 4, 8, 16, 24]
    """
    return _numbers(values, name, {})


def words(values: Words, name: str) -> list[str]:
    """Names, separated by commas; ``name`` is what messages call them.

    >>> words("load, ntstore", "op")
    ['load', 'ntstore']
    """
    return _distinct(part for text in _several(values) for part in _parts(str(text), name))


def _numbers(values: Numbers, name: str, units: dict[str, int]) -> list[int]:
    numbers: list[int] = []
    for value in _several(values):
        if isinstance(value, str):
            for part in _parts(value, name):
                numbers += _range(part, name, units)
        elif isinstance(value, int) and not isinstance(value, bool):
            numbers.append(value)
        else:
            raise XplineError(f"{name} = {value!r}: not a whole number")
    return _distinct(numbers)


def _several(values: object) -> Iterable[object]:
    return values if isinstance(values, Iterable) and not isinstance(values, str) else [values]


def _parts(text: str, name: str) -> list[str]:
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise XplineError(f"{name} = {text!r}: nothing stands between two commas or at an end")
    return parts


def _range(text: str, name: str, units: dict[str, int]) -> list[int]:
    first, dots, last = text.partition("..")
    start = _number(first, text, name, units)
    if not dots:
        return [start]
    end = _number(last, text, name, units)
    if not 0 < start <= end:
        raise XplineError(
            f"{name} = {text!r}: a range doubles from its start to its end; start at 1 or more, end above"
        )
    doubled = []
    while start < end:
        doubled.append(start)
        start *= 2
    return [*doubled, end]


def _number(text: str, whole: str, name: str, units: dict[str, int]) -> int:
    match = _NUMBER.fullmatch(text.strip())
    if match is None or (match[2] and match[2] not in units):
        example = "64, 4KiB, 64..4096 or 64,256" if units else "4, 1..8 or 1,2,4"
        allowed = f" with an optional unit ({', '.join(units)})" if units else ""
        raise XplineError(f"{name} = {whole!r}: expected whole numbers{allowed}, such as {example}")
    number = int(match[1]) * units.get(match[2], 1)
    if number >= _LARGEST:
        raise XplineError(f"{name} = {whole!r}: too large")
    return number


def _distinct(values: Iterable[T]) -> list[T]:
    return list(dict.fromkeys(values))
