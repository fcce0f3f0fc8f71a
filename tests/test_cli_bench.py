"""``xpline bench``, ``xpline platforms`` and ``xpline platform show`` from the command line."""

import json
import re
import signal
from contextlib import contextmanager
from importlib.metadata import version

import polars as pl
import pytest

from xpline import bench, table

QUICK = ["--max-requests", "40000"]


def test_json_is_the_whole_table(xpline):
    code, out, err = xpline("bench", "random", "--on", "optane-ni", "--op", "load", "--size", "64..128", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == bench.random("optane-ni", op="load", size=[64, 128]).to_dicts()


def test_csv_is_the_whole_table(xpline):
    code, out, err = xpline("bench", "stride", "--on", "dram", "--threads", "1,2", "--csv", *QUICK)
    assert (code, err) == (0, "")
    assert out == bench.stride("dram", threads=[1, 2], max_requests=40000).write_csv()


@pytest.mark.parametrize("suffix", table.WRITERS)
def test_out_is_a_file_of_the_whole_table(xpline, tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    code, out, _ = xpline("bench", "latency", "--on", "dram,optane", "--out", str(path), *QUICK)
    assert code == 0
    assert "mean ns" in out
    read = {".parquet": pl.read_parquet, ".csv": pl.read_csv, ".json": pl.read_json}[suffix]
    assert read(path)["platform"].to_list() == ["dram", "optane"]
    assert list(tmp_path.iterdir()) == [path]


def test_the_terminal_shows_the_columns_that_hold_something(xpline):
    code, out, _ = xpline("bench", "random", "--on", "optane-ni", "--op", "ntstore", "--size", "64", "--threads", "1,2")
    assert code == 0
    heading, *rows = [line.split() for line in out.splitlines()]
    assert heading == ["platform", "op", "size", "B", "threads", "MiB/s", "EWR"]
    assert [row[:4] for row in rows] == [["optane-ni", "ntstore", "64", "1"], ["optane-ni", "ntstore", "64", "2"]]


@pytest.mark.parametrize(
    ("arguments", "parameters"),
    [
        ("stride --op ntstore --size 64,256", {"op": "ntstore", "size": [64, 256], "stride": [64, 256]}),
        ("flush --size 1KiB --clwb 64,256", {"size": 1024, "clwb": [64, 256], "fence": 1024, "pattern": "sequential"}),
        (
            "align --on optane --binding own-dimm --threads 2",
            {"binding": "own-dimm", "threads": 2, "size": 256, "fence": None, "fenced": False},
        ),
        ("align --binding own-all --threads 1 --fence 64", {"binding": "own-all", "fence": 64}),
        ("align --binding own-all --threads 1 --fenced", {"binding": "own-all", "fenced": True}),
        ("xpbuffer --lines 1,4", {"lines": [1, 4]}),
        ("persist-latency --op store+clwb --size 64..256", {"op": "store+clwb", "size": [64, 128, 256]}),
        ("random --seed 5", {"seed": 5, "op": "load"}),
    ],
)
def test_every_experiment_has_a_command(xpline, arguments, parameters):
    command, *options = arguments.split()
    code, out, _ = xpline("bench", command, "--json", *options, *QUICK)
    rows = json.loads(out)
    assert code == 0
    assert {row["experiment"] for row in rows} == {command}
    for name, values in parameters.items():
        expected = values if isinstance(values, list) else [values] * len(rows)
        assert [row[name] for row in rows] == expected


def test_set_overrides_the_platform(xpline):
    options = ["--on", "optane-ni", "--set", "optane.xpbuffer.lines=8", "--set", "core.count=1", "--json", *QUICK]
    code, out, _ = xpline("bench", "xpbuffer", *options)
    assert code == 0
    assert json.loads(out)[0]["overrides"] == "optane.xpbuffer.lines=8 core.count=1"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("random --size=-64", "size = '-64': expected whole numbers with an optional unit"),
        ("random --size 100", "size = 100: must be a multiple of 64 bytes"),
        ("random --size 64..", "size = '64..': expected whole numbers"),
        ("random --threads 0", "threads = 0: must be 1 to 24"),
        ("random --threads 1,25", "point 1: threads = 25: must be 1 to 24, a core each (optane has 24)"),
        ("random --op peek", "op: unknown value `peek`, expected one of `load`, `ntstore`, `store`, `store+clwb`"),
        ("random --on nowhere", "no platform `nowhere`"),
        ("random --on bad.toml", "bad.toml:3: unknown key `sockets`"),
        ("random --set optane.xpbuffer.lines", "--set optane.xpbuffer.lines: write KEY=VALUE"),
        ("random --set optane.xpbuffer.lines=-1", "--set: optane.xpbuffer.lines = -1 is"),
        ("random --set optane.xpbuffer.depth=1", "--set: unknown key `optane.xpbuffer.depth`"),
        ("random --json --csv", "--json and --csv: choose one"),
        ("random --out nowhere/t.csv", "nowhere/t.csv: the folder nowhere does not exist"),
        ("random --out /proc/t.csv", "/proc/t.csv: no permission to write in /proc"),
        ("random --out t.xlsx", "t.xlsx: the suffix says how to write a table"),
        ("random --max-requests 0", "max_requests = 0: must be at least 1"),
        ("random --jobs 0", "--jobs"),
        ("random --seed=-1", "--seed"),
        ("random --frequency 1", "--frequency"),
        ("stride --stride 100", "stride = 100: must be a multiple of 64 bytes"),
        ("flush --size 256 --fence 192", "fence = 192: must divide size = 256"),
        ("align --binding everywhere", "binding: unknown value `everywhere`"),
        ("latency --pattern zigzag", "pattern: unknown value `zigzag`, expected `sequential` or `random`"),
        ("xpbuffer --lines 0", "lines = 0: must be 1 to"),
        ("persist-latency --op load", "op = load: makes nothing persistent"),
        ("sideways", "sideways"),
    ],
)
def test_bad_input_is_refused_and_nothing_written(xpline, tmp_path, arguments, message):
    bad = tmp_path / "bad.toml"
    bad.write_text('name = "bad"\nextends = "optane"\nsockets = 2\n')
    command, *options = arguments.split()
    out_file = [] if "--out" in options or command == "sideways" else ["--out", "t.csv"]
    code, out, err = xpline("bench", command, *options, *out_file)
    assert code == 2
    assert message in err
    assert out == ""
    assert list(tmp_path.iterdir()) == [bad]


def test_ctrl_c_keeps_the_complete_points(xpline, tmp_path, monkeypatch):
    @contextmanager
    def counting(title):
        yield lambda done, total: done == 3 and signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("xpline.cli.bench.counting", counting)
    path = tmp_path / "t.csv"
    sizes = ",".join(str(64 * lines) for lines in range(1, 1000))
    code, out, err = xpline("bench", "random", "--size", sizes, "--csv", "--out", str(path), *QUICK)
    assert code == 130
    assert pl.read_csv(path).height == 3
    assert out == path.read_text()
    assert "interrupted after 3 complete points" in err
    assert list(tmp_path.iterdir()) == [path]


def test_the_version_is_that_of_the_package(xpline):
    assert xpline("--version") == (0, f"xpline {version('xpline')}\n", "")


def test_platforms_are_listed(xpline):
    code, out, _ = xpline("platforms")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()][:3] == ["optane", "optane-ni", "dram"]
    cxl = next(line for line in out.splitlines() if line.startswith("cxl-dram "))
    assert re.search(r"\d\d of \d+ estimated$", cxl)


def test_what_is_estimated_is_said(xpline):
    code, out, _ = xpline("platform", "show", "cxl-dram", "--estimates")
    assert code == 0
    assert "[link]" in out and "[l1d]" not in out
    code, _, err = xpline("bench", "latency", "--on", "cxl-dram,optane", *QUICK)
    assert code == 0
    assert re.fullmatch(r"cxl-dram: \d+ of \d+ values are estimates; .*--estimates lists them", err)


def test_a_platform_shown_is_a_platform_file(xpline, tmp_path):
    code, out, _ = xpline("platform", "show", "optane-ni", "--set", "optane.xpbuffer.lines=128")
    assert code == 0
    assert "lines = 128  # --set" in out
    assert "interleave" in out
    copy = tmp_path / "copy.toml"
    copy.write_text(out)
    again = xpline("platform", "show", str(copy))[1]
    values = [[line.split("  #")[0] for line in text.splitlines()] for text in (out, again)]
    assert values[0] == values[1]


def test_a_platform_that_is_not_there(xpline):
    code, out, err = xpline("platform", "show", "nowhere")
    assert (code, out) == (2, "")
    assert "no platform `nowhere`" in err
