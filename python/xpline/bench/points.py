"""Points: experiments as data, one dictionary for each combination of parameters."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from xpline.errors import XplineError
from xpline.values import Numbers, Words, counts, sizes, words

#: Everything that sets an experiment, the platform apart.
Point = dict[str, Any]

#: How the values of each parameter are written. ``None`` stands for the value of ``size``.
READERS: dict[str, Callable[[Any, str], list[Any]]] = {
    "op": words,
    "pattern": words,
    "binding": words,
    "size": sizes,
    "stride": sizes,
    "clwb": sizes,
    "fence": sizes,
    "lines": counts,
    "region": sizes,
    "mask": sizes,
    "buffer": words,
    "order": words,
    "mix": words,
    "delay": counts,
    "threads": counts,
    "cached": lambda cached, _: [bool(cached)],
    "fenced": lambda fenced, _: [bool(fenced)],
}


def points(
    experiment: str, *, seed: int = 1, max_requests: int | None = None, **parameters: Numbers | Words | bool | None
) -> list[Point]:
    """Every combination of the parameters' values as points; the last parameter varies fastest.

    A parameter that is ``None`` takes the value of ``size``: a stride of that kind walks through memory in order.

    >>> for point in points("stride", op="load", size="64..128", stride=None, threads=1):
    ...     print(point)
    {'experiment': 'stride', 'op': 'load', 'size': 64, 'stride': 64, 'threads': 1, 'seed': 1}
    {'experiment': 'stride', 'op': 'load', 'size': 128, 'stride': 128, 'threads': 1, 'seed': 1}
    """
    fixed: Point = {"seed": seed} | ({} if max_requests is None else {"max_requests": max_requests})
    lists: list[list[Any]] = []
    for name, values in parameters.items():
        if name not in READERS:
            raise XplineError(f"no experiment has a parameter {name!r}; known are {', '.join(READERS)}")
        lists.append([None] if values is None else READERS[name](values, name))
    combinations = (dict(zip(parameters, values, strict=True)) for values in product(*lists))
    return [
        {"experiment": experiment}
        | {name: point["size"] if value is None else value for name, value in point.items()}
        | fixed
        for point in combinations
    ]
