"""The memory of this machine: what a measurement tells, and what is said when it cannot be made."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import polars as pl
import pytest

from xpline import XplineError, bench, table
from xpline.cli import main
from xpline.host import Host, Machine

#: A quick measurement: too short to be precise, long enough to be real.
BRIEF = {"span": "16MiB", "window": 0.002, "time_limit": 0.05}
BRIEFLY = ["--on", "host", "--span", "16MiB", "--window", "0.002", "--time-limit", "0.05"]


def started(*arguments, **kwargs):
    """A command in a process of its own."""
    code = "from xpline.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs
    )


def until(condition, seconds=20):
    """Wait for a condition."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "what was waited for did not come"
        time.sleep(0.01)


def test_a_host_gives_the_usual_table_and_what_it_was_measured_on():
    rows = bench.random([Host(**BRIEF), "dram"], op=["load", "ntstore"], size=256, max_requests=None)
    assert list(rows.columns) == [*table.COLUMNS, *table.HOST]
    measured = rows.filter(source="host")
    assert measured["platform"].to_list() == ["host", "host"]
    assert (measured["bandwidth_mib_s"] > 100).all()
    assert (measured["repeats"] >= 2).all()
    for row in measured.iter_rows(named=True):
        assert row["ci_low"] <= row["bandwidth_mib_s"] <= row["ci_high"]
        assert row["settled"] == (row["precision"] <= 0.01 and row["repeats"] >= 9)
        assert row["settled"] or "known to" in row["noise"]
        environment = json.loads(row["environment"])
        assert environment["memory_bytes"] > 0 and environment["kernel"] and environment["numa"]
    assert rows.filter(source="model")["environment"].null_count() == 2


def test_without_a_host_the_table_has_the_columns_of_models():
    assert list(bench.latency("dram", max_requests=40_000).columns) == list(table.COLUMNS)


@pytest.mark.parametrize(
    ("experiment", "parameters"),
    [
        ("stride", {"op": "store", "size": 256}),
        ("flush", {"size": 1024, "clwb": 256, "fence": 512}),
        ("align", {"op": "ntstore", "size": 256, "threads": 1}),
        ("align", {"op": "load", "size": 256, "threads": 1, "binding": "shared-all", "fenced": True}),
        ("latency", {"op": "store+clwb", "pattern": "sequential"}),
        ("persist_latency", {"op": "ntstore", "size": 256}),
        ("xpbuffer", {"lines": 64}),
        ("chase", {"region": 65536}),
        ("chase", {"region": 65536, "cached": True}),
        ("wear", {"op": "ntstore", "size": 256}),
        ("tail", {"op": "ntstore", "region": 256}),
        ("mix", {"mix": "2:1", "op": "ntstore", "region": "1MiB"}),
        ("mix", {"mix": "1:1", "op": "store", "region": "1MiB", "pattern": "random"}),
    ],
)
def test_experiments_run_on_the_host(experiment, parameters):
    row = getattr(bench, experiment)(Host(flush=_flush(), **BRIEF), **parameters).row(0, named=True)
    value = row["bandwidth_mib_s"] or row["latency_mean_ns"]
    assert value > 0 and row["requests"] > 0 and row["bytes"] > 0
    assert (row["flush_by"] is None) == (experiment not in ("flush", "latency"))


@pytest.mark.skipif(Host(**BRIEF).cpus < 2, reason="one thread is timed while another loads the memory")
def test_a_loaded_memory_has_a_latency_and_a_bandwidth():
    calm, busy = bench.loaded(Host(**BRIEF), delay=[20_000, 0], region="4MiB", threads=1, pattern="random").iter_rows(
        named=True
    )
    assert calm["latency_mean_ns"] > 0 and busy["latency_mean_ns"] > 0
    assert busy["bandwidth_mib_s"] > 2 * calm["bandwidth_mib_s"] > 0


def _flush():
    """The best flush that this machine has."""
    return next(one for one in ("clwb", "clflushopt", "clflush") if one in Machine.here().environment["flushes"])


def test_a_cache_is_faster_than_memory():
    cached, beyond = bench.chase(Host(**BRIEF | {"span": "128MiB"}), region=["8KiB", "128MiB"], cached=True)[
        "latency_mean_ns"
    ]
    assert cached < 10 < beyond


def test_every_instruction_set_that_is_here_runs_and_others_are_refused():
    here = Machine.here().environment["isa"]
    for isa in ("avx512", "avx2", "sse2"):
        if isa in here:
            row = bench.random(Host(isa=isa, **BRIEF), op="ntstore", size=256).row(0, named=True)
            assert row["isa"] == isa and row["bandwidth_mib_s"] > 100
        else:
            with pytest.raises(XplineError, match="this CPU has no AVX"):
                Host(isa=isa)


def test_files_and_transfers_say_what_they_got(tmp_path):
    file = bench.stride(Host(f"host:file={tmp_path}/m", **BRIEF), op="ntstore", size=256).row(0, named=True)
    assert file["mapping"] in ("MAP_SYNC", "page cache")
    assert list(tmp_path.iterdir()) == []
    bench.stride(Host(f"host:file={tmp_path}/m", keep=True, **BRIEF), op="load", size=256)
    assert (tmp_path / "m").stat().st_size == 16 << 20


def test_block_targets_read_and_write(tmp_path):
    host = Host(f"host:block={tmp_path}/b", **BRIEF | {"time_limit": 0.1})
    try:
        rows = bench.random(host, op=["load", "store"], size=4096)
    except XplineError as refused:
        assert "O_DIRECT" in str(refused)  # a file system in memory
        return
    assert rows["mapping"].to_list() == ["O_DIRECT"] * 2 and (rows["bandwidth_mib_s"] > 0).all()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(XplineError, match=r"size = 64: must be a multiple of 4096"):
        bench.random(host, op="load", size=64)
    with pytest.raises(XplineError, match="ntstore: is for memory that is mapped"):
        bench.random(host, op="ntstore", size=4096)


def test_a_result_file_keeps_the_environment(xpline, tmp_path):
    code, out, _ = xpline("bench", "random", *BRIEFLY, "--out", "r.parquet")
    assert code == 0 and "host" in out
    environment = json.loads(pl.read_parquet(tmp_path / "r.parquet")["environment"].item())
    assert {"cpu", "kernel", "mitigations", "numa", "modules", "governor", "prefetchers", "hypervisor"} <= set(
        environment
    )


# Faults: each a clear message, nothing left behind, and the status of bad input.

NOBODY_HAS = "1024GiB"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--span", NOBODY_HAS], r"1024 GiB of memory needed, .* free: give each thread less with --span"),
        (["--on", "host:file=m", "--span", NOBODY_HAS], r"1024 GiB of space for m needed, .* free"),
        (["--on", "host:file=no/m"], r"no/m: its folder does not exist"),
        (["--pages", "1GiB", "--span", NOBODY_HAS], r"pages = 1GiB: (needs 1024 free pages|this system has no pages)"),
        (["--threads", "100000"], r"threads = 100000: must be 1 to \d+, a core each \(host has \d+\)"),
        (["--cpu-node", "999"], r"cpu node 999: does not exist; nodes with CPUs"),
        (["--cpus", "99999"], r"cpus = 99999: no such CPU"),
        (["--cpus", "0,x"], r"cpus = 0,x: expected numbers and ranges"),
        (["--on", "host:node=999"], r"no memory on such a NUMA node"),
        (
            ["--on", "host:dax=/dev/null"],
            r"the device would be overwritten; say so with --destroy",
        ),
        (["--on", "host:dax=/dev/null", "--destroy"], r"/dev/null: is no device-DAX device"),
        (["--on", "host:dax=/nowhere"], r"/nowhere: cannot be opened"),
        (["--on", "host:tape=x"], r"target host:tape=x: write host, host:node=N"),
        (["--precision", "0"], r"precision = 0: must be above 0"),
        (["--precision", "x%"], r"precision = x%: expected a share"),
        (["--flush-by", "clzero"], r"flush = clzero: expected one of clwb"),
        (["--max-requests", "5"], r"max_requests = 5: is for models"),
        (["--set", "core.count=3"], r"host is no model"),
        (["--explain"], r"leave the host out"),
        (["--size", "32MiB"], r"size = 33554432: does not fit in the 16777216 bytes that a thread works in"),
    ],
)
def test_what_cannot_be_is_said(xpline, tmp_path, arguments, message):
    code, out, err = xpline("bench", "random", *BRIEFLY, *arguments)
    assert (code, out) == (2, "")
    assert re.search(message, err), err
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_exists_is_never_overwritten(xpline, tmp_path):
    (tmp_path / "mine").write_text("mine")
    for kind in ("file", "block"):
        code, _, err = xpline("bench", "random", *BRIEFLY, "--size", "4096", "--on", f"host:{kind}=mine")
        assert code == 2 and "exists already" in err
    assert (tmp_path / "mine").read_text() == "mine"


def test_experiments_that_look_inside_a_dimm_are_refused(xpline):
    code, _, err = xpline("bench", "replacement", *BRIEFLY)
    assert code == 2 and "use an Optane platform" in err


#: A sweep that takes half a minute, a third of a second a point.
MANY = ",".join(str(64 * n) for n in range(1, 100))
AT_LENGTH = ["--span", "16MiB", "--window", "0.005", "--time-limit", "0.3", "--precision", "0.0001%"]


def test_a_file_that_is_truncated_under_the_mapping(tmp_path):
    """The lost pages raise SIGBUS; what was complete is kept, and the message names the file."""
    path, out = tmp_path / "m", tmp_path / "r.csv"
    options = [
        "--span",
        "16MiB",
        "--window",
        "0.005",
        "--time-limit",
        "0.3",
        "--precision",
        "0.0001%",
        "--out",
        str(out),
    ]
    sizes = ",".join(str(64 * n) for n in range(1, 100))
    run = started("bench", "stride", "--on", f"host:file={path}", "--size", sizes, *options)
    until(lambda: path.exists() and path.stat().st_size == 16 << 20)
    time.sleep(1.2)
    os.truncate(path, 0)
    _, err = run.communicate(timeout=30)
    assert run.returncode == 2, err
    assert "m: the file was truncated" in err.replace("\n", "")
    assert 1 <= pl.read_csv(out).height < 99
    assert not path.exists()


@pytest.mark.parametrize("target", ["host", "host:file=m"])
def test_ctrl_c_keeps_what_was_complete(tmp_path, target):
    options = [
        "--span",
        "16MiB",
        "--window",
        "0.005",
        "--time-limit",
        "0.3",
        "--precision",
        "0.0001%",
        "--out",
        "r.csv",
    ]
    sizes = ",".join(str(64 * n) for n in range(1, 100))
    run = started("bench", "random", "--on", target, "--size", sizes, *options, cwd=tmp_path)
    time.sleep(2.5)
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=30)
    assert run.returncode == 130, err
    assert "interrupted after" in err
    rows = pl.read_csv(tmp_path / "r.csv")
    assert 1 <= rows.height < 99 and rows["repeats"].min() >= 2
    assert [path.name for path in tmp_path.iterdir()] == ["r.csv"]


def test_a_look_at_the_host(monkeypatch, capsys, tmp_path):
    """Cut short: what is there, not how well it is known."""
    from xpline.host import look

    monkeypatch.setattr(look, "BUDGET", 1.5)
    monkeypatch.setattr(look, "_SPAN", 16 << 20)
    monkeypatch.setattr(look, "_MODEL_CORES", 2)
    with pytest.raises(SystemExit) as ended:
        main(["host", "--models", "dram", "--out", str(tmp_path / "page")])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("CPU", "hypervisor", "latency: L1d", "bandwidth: ", "64 B made persistent"))
    page = (tmp_path / "page" / "index.html").read_text()
    assert all(f"chart-{name}" in page for name in ("chase-region", "stride-threads", "random-size"))
    rows = pl.read_parquet(tmp_path / "page" / "results.parquet")
    assert set(rows["platform"]) == {"host", "dram"}
    assert set(rows["flush_by"].drop_nulls()) == set(Machine.here().environment["flushes"])


def test_a_look_is_at_memory_of_this_machine(xpline):
    for on in ("dram", "host:block=x"):
        code, _, err = xpline("host", "--on", on)
        assert code == 2 and on in err
