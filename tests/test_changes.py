"""The changes of a platform that are data: what relieves a part, what switches a mechanism off. They must fit the
platforms as they are, so that a key with a new name does not silently drop out of them."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest

from xpline import Platform
from xpline.bench.relief import PARTS
from xpline.changes import Change
from xpline.validate.ablation import MECHANISMS

PLATFORMS = {name: Platform(name) for name in ("optane", "optane-ni", "dram", "optane-remote")}
VALUES = {name: {entry.key: entry.value for entry in platform.show()} for name, platform in PLATFORMS.items()}
KEYS = set().union(*VALUES.values())
MEMORIES = {"core": KEYS, "optane": set(VALUES["optane"]), "dram": set(VALUES["dram"])}
NOT_SWITCHED = tomllib.loads((files("xpline.validate") / "mechanisms.toml").read_text())["not_switched"]
CHANGES = [*PARTS, *MECHANISMS]
ids = [change.name for change in CHANGES]


@pytest.mark.parametrize("change", CHANGES, ids=ids)
def test_every_key_is_one_of_a_platform(change):
    assert {key for key, _ in change.values} <= KEYS
    named = {value for _, value in change.values if isinstance(value, str) and "." in value and value[0].isalpha()}
    assert named <= KEYS


@pytest.mark.parametrize("change", CHANGES, ids=ids)
def test_every_platform_takes_it_and_differs(change):
    changed = []
    for name, platform in PLATFORMS.items():
        other = platform.changed(change.on(platform))
        changed += [entry.key for entry in other.show() if VALUES[name][entry.key].strip('"') != entry.value.strip('"')]
    # The default budget is the reference: it takes another budget to see this law.
    assert changed or change.name == "law: power"
    assert set(changed) <= {key for key, _ in change.values}


def test_names_are_distinct_and_described():
    assert len(set(ids)) == len(ids)
    assert all(change.about.endswith(".") for change in MECHANISMS)


def test_every_parameter_of_the_model_is_accounted_for():
    switched = {key for mechanism in MECHANISMS for key, _ in mechanism.values}
    excused = [key for keys in NOT_SWITCHED.values() for key in keys]
    assert len(set(excused)) == len(excused)
    assert set(excused) <= KEYS
    assert not set(excused) & switched
    missing = {key for key in KEYS if "." in key} - switched - set(excused)
    assert not missing, "name what switches these off in mechanisms.toml, or why nothing does"


def test_a_change_wins_over_what_the_platform_was_given():
    platform = Platform("optane", set={"optane.xpbuffer.lines": 32, "l3.ways": 11})
    change = Change(
        "more", "", (("optane.xpbuffer.lines", 128), ("dram.tcl", "1ns"), ("core.nt_latency", "core.fence"))
    )
    other = platform.changed(change.on(platform))
    assert other["optane.xpbuffer.lines"].value == "128"
    assert other["l3.ways"].value == "11"
    assert other["core.nt_latency"].value == platform["core.fence"].value.strip('"')
    assert platform["optane.xpbuffer.lines"].value == "32"
