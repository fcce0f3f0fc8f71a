"""Platforms from Python."""

import pytest

import xpline

OWN = """\
name = "own"
description = "One DIMM with half the buffer"
extends = "optane-ni"

[optane.xpbuffer]
lines = 32 # a guess
"""


def test_a_platform_comes_from_a_file(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(OWN)
    platform = xpline.Platform(path)
    assert (platform.name, platform.description) == ("own", "One DIMM with half the buffer")
    lines = platform["optane.xpbuffer.lines"]
    assert (lines.value, lines.source, lines.origin) == ("32", "a guess", f"{path}:6")


def test_a_wrong_file_is_named_with_its_line(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(OWN.replace("lines = 32", "line = 32"))
    with pytest.raises(xpline.XplineError) as error:
        xpline.Platform(path)
    assert str(error.value).startswith(f"{path}:6: ")


def test_values_are_overridden_by_key():
    platform = xpline.Platform("optane", set={"interleave.dimms": 3, "l3.size": "66MiB"})
    assert (platform["interleave.dimms"].value, platform["l3.size"].origin) == ("3", "--set")
    assert platform.overrides == ("interleave.dimms=3", "l3.size=66MiB")
    assert repr(platform) == "<Platform optane, interleave.dimms=3, l3.size=66MiB>"
    assert platform.cores == xpline.Platform("optane", set={"core.count": 24}).cores == 24


def test_there_is_no_such_key():
    with pytest.raises(KeyError, match="xpbuffer"):
        xpline.Platform("optane")["xpbuffer"]
    with pytest.raises(xpline.XplineError, match=r"unknown key `optane\.xpbuffer\.size`"):
        xpline.Platform("optane", set={"optane.xpbuffer.size": 1})


def test_every_built_in_platform_runs():
    assert {"optane", "optane-ni", "dram"} <= set(xpline.platform_names())
    for name in xpline.platform_names():
        assert xpline.bench.latency(name, max_requests=10_000)["latency_mean_ns"].item() > 0
