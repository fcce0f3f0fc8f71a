"""The platforms that take part in a fit, and which of the fitted values each of them has.

The rows of a data set run on ``optane``, ``dram`` and variants of them. One of them is the *base*, whose
values are fitted. A fitted value is also that of every other platform that has it *from the same line of the same
file*: what a host has is shared by its memories, and what Optane DIMMs have by their interleavings. So the rows
of all of them tell about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xpline import variants
from xpline.cases import SWEEP
from xpline.errors import XplineError
from xpline.platform import Platform, platform_names


@dataclass(frozen=True)
class Member:
    """A platform of the data set: the name by which rows know it, and what stands for it."""

    name: str
    #: The name or file of the platform that is loaded, and what is set on top to make it the member.
    file: str
    fixed: tuple[tuple[str, str], ...]
    #: The origin of each of its values.
    origins: dict[str, str]

    @property
    def platform(self) -> Platform:
        """The platform as it is before the fit."""
        return Platform(self.file, set=dict(self.fixed))


@dataclass(frozen=True)
class Members:
    """The base first, then the others."""

    all: tuple[Member, ...]

    @property
    def base(self) -> Member:
        return self.all[0]

    def sharing(self, key: str) -> set[str]:
        """Names of the members that have the base's value of ``key``."""
        origin = self.base.origins[key]
        return {member.name for member in self.all if member.origins.get(key) == origin}

    def __getitem__(self, name: str) -> Member:
        return next(member for member in self.all if member.name == name)


def members(platforms: Sequence[str], *, of_host: bool = False) -> Members:
    """The members of a fit of the first of ``platforms`` (names or files); the others stand for their kind of rows.

    A platform stands for the rows that it can run: its memory and the number of DIMMs say which. Rows of a variant
    (:mod:`xpline.variants`: one DIMM, the other socket, the state of 2018) run on the file that is given for
    its base, with what makes the variant set on top, unless a platform is given for them. What remains is built in.
    In a sweep ``of_host`` all rows are of the one memory that was measured, whichever node it is on.

    >>> [member.name for member in members(["dram"]).all]
    ['dram', 'optane', 'optane-ni', 'optane-remote', 'dram-remote', 'optane-2018']
    >>> sorted(members(["dram"]).sharing("core.fill_buffers"))
    ['dram', 'dram-remote', 'optane', 'optane-2018', 'optane-ni', 'optane-remote']
    >>> sorted(members(["dram"]).sharing("dram.tcl"))
    ['dram', 'dram-remote']
    >>> members(["cxl-dram"]).base.name, members(["cxl-dram"], of_host=True).base.name
    ('dram-remote', 'dram')
    """
    given: dict[str, Member] = {}
    for platform in platforms:
        loaded = Platform(platform)
        name = _role(loaded, of_host)
        if name in given:
            raise XplineError(f"--platform {platform}: {given[name].file} stands for the rows of {name} already")
        given[name] = _member(name, platform)
    rest = [_stand_in(name, given) for name in SWEEP if name not in given]
    return Members((*given.values(), *rest))


def _stand_in(name: str, given: Mapping[str, Member]) -> Member:
    """A member that no platform was given for."""
    base = given.get(variants.base(name) or "")
    if base is None or base.file in platform_names():
        return _member(name, name)
    return _member(name, base.file, tuple(variants.changed(name).items()))


def _role(platform: Platform, of_host: bool) -> str:
    memory = platform["memory"].value.strip('"')
    if not of_host and platform["nodes.cpu"].value != platform["nodes.memory"].value:
        return f"{memory}-remote"
    if memory == "dram":
        return "dram"
    return "optane-ni" if platform["interleave.dimms"].value == "1" else "optane"


def _member(name: str, file: str, fixed: tuple[tuple[str, str], ...] = ()) -> Member:
    origins = {entry.key: entry.origin for entry in Platform(file, set=dict(fixed)).show()}
    return Member(name, file, fixed, origins)
