"""From a workload file to its cases."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from itertools import product
from os import PathLike
from pathlib import Path

from xpline.errors import XplineError
from xpline.workload.case import Case
from xpline.workload.job import KEYS, make
from xpline.workload.source import Place, load

_SECTIONS = ("matrix", "args")
_PARALLEL = "parallel_benchmark"

#: More combinations than anyone waits for.
_MOST_CASES = 100_000


def read(path: str | PathLike[str], only: str | None = None) -> list[Case]:
    """Every case of a workload file, in its order; those of the benchmark ``only``, if that is given.

    >>> _ = Path("bad.yaml").write_text("reads:\\n  args:\\n    access_size: 100\\n")
    >>> read("bad.yaml")
    Traceback (most recent call last):
    ...
    xpline.XplineError: bad.yaml:3: reads.args.access_size = 100: must be a multiple of 64 B, ...
    """
    benchmarks = load(Path(path)).entries()
    if not benchmarks:
        raise XplineError(f"{path}:1: no benchmarks; expected names with their matrix or args")
    if only is not None and only not in benchmarks:
        raise XplineError(f"--only {only}: {path} has no such benchmark; it has {', '.join(benchmarks)}")
    cases: list[Case] = []
    for name, place in benchmarks.items():
        if only in (None, name):
            cases += _cases(name, place, _MOST_CASES - len(cases))
    return cases


def _cases(name: str, place: Place, most: int) -> Iterator[Case]:
    entries = place.entries()
    parts = {name: place}
    if _PARALLEL in entries:
        _refuse_others(entries, (_PARALLEL,), "with parallel_benchmark, matrix and args belong to its two parts")
        parts = entries[_PARALLEL].entries()
        if len(parts) != 2:
            raise entries[_PARALLEL].error(f"has {len(parts)} parts; expected two names, each with matrix or args")
    axes = [(part, key, values) for part, at in parts.items() for key, values in _matrix(at).items()]
    combinations = 1
    for _, _, values in axes:
        combinations *= len(values)
    if combinations > most:
        raise place.error(f"over {_MOST_CASES} combinations")
    for chosen in product(*(values for _, _, values in axes)):
        matrix, jobs = {}, {}
        for part, at in parts.items():
            own = {key: value for (owner, key, _), value in zip(axes, chosen, strict=True) if owner == part}
            prefix = f"{part}." if len(parts) > 1 else ""
            matrix |= {prefix + key: value.text.strip() for key, value in own.items()}
            jobs[part] = make(_args(at) | own, at)
        if len({job.numa_pattern for job in jobs.values()}) > 1:
            raise place.error("numa_pattern is near in one part and far in the other; cores of a run share a socket")
        yield Case(name, matrix, jobs, place)


def _args(place: Place) -> dict[str, Place]:
    entries = place.entries()
    _refuse_others(entries, _SECTIONS, "a benchmark has matrix, args, or parallel_benchmark")
    args = _known(entries["args"].entries()) if "args" in entries else {}
    both = [key for key in _matrix(place) if key in args]
    if both:
        raise args[both[0]].error("is in matrix and in args; give it once")
    return args


def _matrix(place: Place) -> dict[str, list[Place]]:
    entries = place.entries()
    _refuse_others(entries, _SECTIONS, "a benchmark has matrix, args, or parallel_benchmark")
    if "matrix" not in entries:
        return {}
    return {key: list(values.items()) for key, values in _known(entries["matrix"].entries()).items()}


def _known(entries: dict[str, Place]) -> dict[str, Place]:
    for key, place in entries.items():
        if key not in KEYS:
            near = get_close_matches(key, KEYS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(KEYS)}"
            raise place.error(f"unknown key; {hint}")
    return entries


def _refuse_others(entries: dict[str, Place], known: tuple[str, ...], rule: str) -> None:
    for key, place in entries.items():
        if key not in known:
            raise place.error(f"unknown key; {rule}")
