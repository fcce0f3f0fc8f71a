"""Which values of a platform may be fitted, within what bounds, and which measurements tell about them: data.

xpline's own list is ``reference/fit.toml``; docs/reference/fit.md describes the format.
"""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from xpline.dataset import CONFIGURATION
from xpline.errors import XplineError
from xpline.fit import quantity
from xpline.platform import Platform, platform_names

#: The keys of an entry; those that may be left out.
_KEYS = {"key", "low", "high", "scale", "integer", "rows"}
_OPTIONAL = {"scale", "integer", "rows"}

#: Columns that a condition on rows may name.
_COLUMNS = {"file"} | {column for columns in CONFIGURATION.values() for column in columns}


@dataclass(frozen=True)
class Parameter:
    """A value of a platform that may be fitted: its dotted key, and its bounds as numbers of ``unit``.

    The search sees a position from 0 (``low``) to 1 (``high``), on a logarithmic scale if ``log``.

    >>> interval = Parameter("optane.media.read_interval", 10.0, 40.0, unit="ns", log=True)
    >>> interval.position(20.0), interval.value(0.5)
    (0.5, 20.0)
    """

    key: str
    low: float
    high: float
    unit: str = ""
    log: bool = True
    integer: bool = False
    #: Alternatives, each a list of conditions ``COLUMN=VALUE[|VALUE...]``: rows that meet all conditions of one
    #: alternative tell about the value. Without any, all rows of the platform do.
    rows: tuple[tuple[str, ...], ...] = ()

    def position(self, value: float) -> float:
        """Where a value stands between the bounds."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def value(self, position: float) -> float:
        """The value at a position, as a platform file would hold it."""
        if self.log:
            exact = self.low * (self.high / self.low) ** position
        else:
            exact = self.low + (self.high - self.low) * position
        return min(max(quantity.rounded(exact, self.integer), self.low), self.high)

    def text(self, value: float) -> str:
        """A value with its unit."""
        return quantity.render(value, self.unit)

    def told_by(self, file: str, configuration: dict[str, str | None]) -> bool:
        """Whether rows of the table ``file`` with this configuration tell about the value.

        >>> Parameter("core.nt_interval", 1.0, 9.0, rows=(("operation=NTStore",),)).told_by("flush", {"op": "0"})
        False
        """
        known = configuration | {"file": file}
        return not self.rows or any(all(_meets(known, one) for one in conditions) for conditions in self.rows)


def _meets(configuration: dict[str, str | None], condition: str) -> bool:
    column, _, values = condition.partition("=")
    return configuration.get(column) in values.split("|")


def read_parameters(path: str | Path | None = None, own: str = "fit.toml") -> list[Parameter]:
    """The parameters in a file, or xpline's own: ``fit.toml``, or ``fit-host.toml`` for sweeps of a host.

    >>> any(parameter.key == "optane.media.read_interval" for parameter in read_parameters())
    True
    """
    name = str(path or own)
    try:
        text = Path(path).read_text() if path else resources.files(__package__).joinpath(own).read_text()
        content = tomllib.loads(text)
    except OSError as error:
        raise XplineError(f"parameters {name}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise XplineError(f"parameters {name}: not valid TOML: {error}") from error
    entries = content.pop("parameter", None)
    if content or not isinstance(entries, list) or not entries or not all(isinstance(e, dict) for e in entries):
        found = f"; found {', '.join(content)}" if content else ""
        raise XplineError(f"parameters {name}: expected a list of [[parameter]], and nothing else{found}")
    known = {entry.key for platform in platform_names() for entry in Platform(platform).show()}
    parameters = [_read(entry, f"parameters {name}, entry {i}", known) for i, entry in enumerate(entries, start=1)]
    keys = [parameter.key for parameter in parameters]
    for key in keys:
        if keys.count(key) > 1:
            raise XplineError(f"parameters {name}: {key} stands there {keys.count(key)} times; keep one entry")
    return parameters


def select(parameters: Sequence[Parameter], prefixes: Sequence[str]) -> list[Parameter]:
    """The parameters whose key is, or is inside, one of ``prefixes``; all without any."""
    for prefix in prefixes:
        if not any(_inside(parameter.key, prefix) for parameter in parameters):
            sections = {".".join(p.key.split(".")[:n]) for p in parameters for n in range(1, p.key.count(".") + 2)}
            raise XplineError(
                f"--only {prefix}: {_guess(prefix, sections)}parameters that may be fitted are "
                f"{', '.join(parameter.key for parameter in parameters)}"
            )
    return [p for p in parameters if not prefixes or any(_inside(p.key, prefix) for prefix in prefixes)]


def _inside(key: str, prefix: str) -> bool:
    return key == prefix or key.startswith(f"{prefix.rstrip('.')}.")


def _guess(word: str, known: set[str]) -> str:
    near = difflib.get_close_matches(word, sorted(known), n=1)
    return f"did you mean {near[0]}? " if near else ""


def _read(entry: dict[str, Any], where: str, known: set[str]) -> Parameter:
    """One entry, checked."""
    key = entry.get("key")
    if isinstance(key, str):
        where = f"{where} ({key})"
    for problem, names in (("unknown", entry.keys() - _KEYS), ("missing", _KEYS - _OPTIONAL - entry.keys())):
        if names:
            raise XplineError(f"{where}: {problem} {', '.join(sorted(names))}; an entry has {', '.join(sorted(_KEYS))}")
    if key not in known:
        hint = _guess(str(key), known) or "`xpline platform show optane` lists the keys"
        raise XplineError(f"{where}: no platform has the key {key!r}; {hint}".rstrip())
    low, high, unit = _bounds(entry, where)
    scale, integer = entry.get("scale", "log"), entry.get("integer", False)
    if scale not in ("log", "linear"):
        raise XplineError(f'{where}: scale = {scale!r}; write "log" or "linear"')
    if scale == "log" and low <= 0:
        raise XplineError(f'{where}: low = {entry["low"]} must be above 0 on a logarithmic scale; use scale = "linear"')
    if not isinstance(integer, bool):
        raise XplineError(f"{where}: integer = {integer!r}; write true or false")
    if integer and not (low.is_integer() and high.is_integer()):
        raise XplineError(f"{where}: bounds {entry['low']} and {entry['high']} must be whole, as integer = true")
    return Parameter(key, low, high, unit, scale == "log", integer, _rows(entry.get("rows", []), where))


def _bounds(entry: dict[str, Any], where: str) -> tuple[float, float, str]:
    """Low and high, as numbers of the unit that low is written in."""
    values = []
    for name in ("low", "high"):
        parsed = quantity.parse(entry[name])
        if parsed is None:
            raise XplineError(
                f'{where}: {name} = {entry[name]!r} is no quantity; write it as a platform file does: "36ns", 16'
            )
        values.append(parsed)
    (low, unit), (number, other) = values
    high = quantity.convert(number, other, unit)
    if high is None:
        raise XplineError(
            f"{where}: low = {entry['low']} and high = {entry['high']} have units that do not go together"
        )
    if not low < high:
        raise XplineError(f"{where}: low = {entry['low']} must be less than high = {entry['high']}")
    return low, high, unit


def _rows(rows: object, where: str) -> tuple[tuple[str, ...], ...]:
    """Alternatives of conditions, from texts such as ``"file=flush,threads=1"``."""
    if not isinstance(rows, list) or not all(isinstance(text, str) for text in rows):
        raise XplineError(f'{where}: rows = {rows!r}; write a list of texts, such as ["operation=Load", "file=flush"]')
    alternatives = tuple(tuple(part.strip() for part in text.split(",")) for text in rows)
    for condition in (condition for conditions in alternatives for condition in conditions):
        column, equals, _ = condition.partition("=")
        if not equals or column not in _COLUMNS:
            raise XplineError(
                f"{where}: rows: {condition!r}: write COLUMN=VALUE (alternatives as VALUE|VALUE) with a column out of "
                f"{', '.join(sorted(_COLUMNS))}"
            )
    return alternatives
