"""What bounds a point: the part whose relief makes it faster."""

from __future__ import annotations

import json

import pytest

from xpline import Interrupted, Platform, bench
from xpline.bench.relief import PARTS, bound, explain
from xpline.cli import main


def explained(platform, **point):
    return explain(bench.run(platform, [point]), platform, [point]).row(0, named=True)


def test_one_reader_of_dram_is_bound_by_its_core():
    """A core keeps about 10 lines in flight: 10 x 64 B over 100 ns are 6 GB/s of the 120 that the channels have."""
    row = explained("dram", experiment="random", op="load", size=64, threads=1)
    assert row["bound"] == "core"
    assert row["bound_gain"] > 1


def test_eight_small_writers_of_one_dimm_are_bound_by_its_media():
    """Each 64 B costs the media a line of 256 B: 9 million lines a second are 0.55 GiB/s; one core issues 4 GB/s."""
    row = explained("optane-ni", experiment="random", op="ntstore", size=64, threads=8)
    assert row["bound"] == "media"
    assert row["bound_gain"] > 1


def test_a_crowd_of_readers_of_dram_is_bound_by_the_buses():
    row = explained("dram", experiment="random", op="load", size=256, threads=24)
    assert row["bound"] == "fabric"


def test_an_idle_read_of_optane_waits_for_the_media_most():
    """Of 305 ns, the media take more than the buffer and the way there and back."""
    assert explained("optane-ni", experiment="latency", op="load", pattern="random")["bound"] == "media"


def test_no_part_bounds_a_point_that_none_relieves():
    same = {part.name: {"bandwidth_mib_s": 1040.0} for part in PARTS}
    found = bound({"bandwidth_mib_s": 1000.0}, same)
    assert (found.part, str(found)) == ("none", "none")
    assert found.gain == pytest.approx(0.04)


def test_the_greatest_gain_names_the_part():
    rows = {
        "core": {"bandwidth_mib_s": 1100.0},
        "queue": {"bandwidth_mib_s": 12000.0},
        "media": {"bandwidth_mib_s": 3000.0},
    }
    found = bound({"bandwidth_mib_s": 1000.0}, rows)
    assert found.part == "queue"
    assert str(found) == "queue ×10 or more, media ×3.0, core +10%"


def test_latencies_are_sped_up_by_being_shorter():
    usual = {"bandwidth_mib_s": None, "latency_mean_ns": 300.0}
    found = bound(usual, {"media": {"bandwidth_mib_s": None, "latency_mean_ns": 150.0}})
    assert (found.part, found.gain) == ("media", pytest.approx(1.0))


def test_every_platform_and_point_keeps_its_row():
    points = bench.points("random", op="load", size=64, threads=[1, 2])
    platforms = [Platform("dram"), Platform("optane", set={"optane.xpbuffer.lines": 32})]
    usual = bench.run(platforms, points)
    table = explain(usual, platforms, points, jobs=1)
    assert table.drop("bound", "bound_gain").equals(usual)
    assert table["bound"].null_count() == 0


def test_ctrl_c_hands_out_the_table_without_the_answers():
    point = {"experiment": "random", "op": "load", "size": 64, "threads": 1}
    usual = bench.run("dram", [point])

    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(Interrupted) as stopped:
        explain(usual, "dram", [point], progress=stop)
    assert stopped.value.table.equals(usual)


def test_the_command_adds_two_columns(capsys):
    words = ["bench", "random", "--on", "dram", "--threads", "1", "--json"]
    rows = {}
    for more in ([], ["--explain"]):
        with pytest.raises(SystemExit) as ended:
            main([*words, *more])
        assert not ended.value.code
        rows[bool(more)] = json.loads(capsys.readouterr().out)[0]
    assert rows[True] == rows[False] | {"bound": "core", "bound_gain": rows[True]["bound_gain"]}
