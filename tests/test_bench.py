"""The experiments from Python."""

import json
import os
import signal
import threading
import time

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xpline
from xpline import bench, table

QUICK = 40_000  # requests: enough for the first eight windows


def test_every_combination_runs_in_order():
    result = bench.random(["dram", "optane-ni"], op="load,ntstore", size=[64, 256], threads="1..2", max_requests=QUICK)
    expected = [
        (platform, op, size, threads)
        for platform in ("dram", "optane-ni")
        for op in ("load", "ntstore")
        for size in (64, 256)
        for threads in (1, 2)
    ]
    assert result.select("platform", "op", "size", "threads").rows() == expected
    assert result.schema == pl.Schema(table.COLUMNS)


def test_the_same_seed_gives_the_same_bits_on_any_number_of_jobs():
    def run(jobs, seed=1):
        return bench.random("optane", op=["ntstore", "store"], size=[64, 4096], threads=[1, 6], jobs=jobs, seed=seed)

    first = run(jobs=1).write_json()
    assert run(jobs=2).write_json() == first
    assert run(jobs=2).write_json() == first
    assert run(jobs=1, seed=2).drop("seed").write_json() != run(jobs=1).drop("seed").write_json()


def test_progress_hears_of_every_row_once():
    heard = {}
    result = bench.latency(
        ["dram", "optane"], op=["load", "ntstore"], max_requests=QUICK, progress=lambda i, row: heard.update({i: row})
    )
    assert sorted(heard) == [0, 1, 2, 3]
    assert table.from_rows(heard[i] for i in range(4)).equals(result)


def test_what_progress_raises_stops_the_sweep():
    def fail(index, row):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        bench.random("dram", size="64..4096", progress=fail)


def test_an_interrupt_keeps_the_complete_rows():
    seen = []

    def interrupt(index, row):
        seen.append(row["size"])
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(xpline.Interrupted, match="interrupted after 2 complete points") as stopped:
        bench.random("dram", size="64..4096", jobs=1, max_requests=QUICK, progress=interrupt)
    assert stopped.value.table["size"].to_list() == sorted(seen)


def test_ctrl_c_does_not_wait_for_a_long_point():
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    started = time.monotonic()
    with pytest.raises(xpline.Interrupted, match="interrupted after 0 complete points"):
        bench.persist_latency("optane", size="1GiB")
    assert time.monotonic() - started < 10


def test_no_point_runs_if_one_is_wrong():
    ran = []
    small = xpline.Platform("optane", set={"core.count": 2})
    with pytest.raises(xpline.XplineError, match=r"point 1: threads = 4: must be 1 to 2"):
        bench.random(["optane", small], threads=[1, 4], progress=lambda *row: ran.append(row))
    assert not ran


def test_overrides_are_in_the_table():
    platform = xpline.Platform("optane-ni", set={"optane.xpbuffer.lines": 8, "optane.power.budget": "12.5W"})
    result = bench.xpbuffer(platform, lines=64)
    assert result["overrides"].to_list() == ["optane.xpbuffer.lines=8 optane.power.budget=12.5W"]
    assert result["ewr"].item() < bench.xpbuffer("optane-ni", lines=64)["ewr"].item()


def test_a_point_may_be_written_by_hand():
    point = {"experiment": "stride", "op": "load", "size": 64, "stride": 0, "threads": 1}
    row = bench.run("dram", [point]).row(0, named=True)
    assert {name: row[name] for name in point} == point
    assert row["seed"] == 1
    assert row["imc_read_bytes"] == 0  # the line stays in the L1d


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ({"experiment": "sideways"}, 'experiment = "sideways": unknown; known are random, stride,'),
        ({"experiment": "xpbuffer", "lines": -1}, "xpbuffer: lines: invalid value: integer `-1`"),
        ({"experiment": "xpbuffer", "lines": 1, "speed": 9}, "xpbuffer: unknown field `speed`"),
        ({"experiment": "random", "op": "load", "size": 100, "threads": 1}, "size = 100: must be a multiple of 64"),
    ],
)
def test_points_that_cannot_run(point, message):
    with pytest.raises(xpline.XplineError, match=message):
        bench.run("optane", [point])


def test_no_experiment_has_that_parameter():
    with pytest.raises(xpline.XplineError, match="no experiment has a parameter 'sise'; known are op, pattern,"):
        bench.points("random", sise=64)


def test_jobs_must_be_positive():
    with pytest.raises(xpline.XplineError, match="jobs = 0: must be at least 1"):
        bench.latency("dram", jobs=0)


def test_a_point_that_may_run_too_short_a_time_says_so():
    result = bench.random("optane", op="ntstore", size=4096, threads=6, max_requests=64)
    assert result["settled"].to_list() == [False]
    assert result["requests"].item() < 1000


accesses = st.fixed_dictionaries(
    {
        "experiment": st.just("stride"),
        "op": st.sampled_from(["load", "ntstore", "store", "store+clwb"]),
        "size": st.integers(1, 64).map(lambda lines: 64 * lines),
        "stride": st.integers(0, 64).map(lambda lines: 64 * lines),
        "threads": st.integers(1, 8),
        "seed": st.integers(0, 1 << 63),
        "max_requests": st.just(QUICK),
    }
)


@settings(max_examples=40, deadline=None)
@given(accesses, st.sampled_from(["optane", "optane-ni", "dram"]))
def test_any_point_gives_a_row_that_adds_up(point, platform):
    row = bench.run(platform, [point]).row(0, named=True)
    assert row["bandwidth_mib_s"] == pytest.approx(row["bytes"] / 2**20 / (row["time_ns"] * 1e-9))
    assert row["requests"] * 64 == row["bytes"]
    for ratio in ("buffer_hit_ratio", "l3_hit_ratio"):
        assert row[ratio] is None or 0 <= row[ratio] <= 1
    if row["media_written_bytes"] and row["imc_written_bytes"]:
        assert row["ewr"] == pytest.approx(row["imc_written_bytes"] / row["media_written_bytes"])
    json.dumps(row, allow_nan=False)
