"""Sockets, loads and Memory Mode, from Python and on the command line."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from xpline import Platform, XplineError, bench
from xpline.bench.nodes import placements
from xpline.cases import Platforms
from xpline.cases import run as run_cases
from xpline.cli import main
from xpline.loads import EMULATED_LOADS, EMULATED_WRITES


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["bench", *arguments])
    out, err = capsys.readouterr()
    return ended.value.code, out, " ".join(err.split())


def test_placements_are_every_combination_of_sockets():
    assert placements("0,both", [1]) == [
        {"nodes.cpu": "0", "nodes.memory": "1"},
        {"nodes.cpu": "both", "nodes.memory": "1"},
    ]
    with pytest.raises(XplineError, match="mem_node = 2: no socket; use 0, 1, both"):
        placements(memory=2)


def test_the_other_socket_is_the_remote_platform():
    far = bench.latency("dram", op="load", mem_node=1)["latency_mean_ns"].item()
    assert far == bench.latency("dram-remote", op="load")["latency_mean_ns"].item()
    assert far == bench.latency("dram", op="load", cpu_node=1)["latency_mean_ns"].item()
    assert far > bench.latency("dram", op="load", cpu_node=1, mem_node=1)["latency_mean_ns"].item()


def test_every_experiment_takes_sockets(capsys):
    for command in ("random", "stride", "flush", "latency", "persist-latency", "mix"):
        short = (
            ["--max-requests", "4000", "--json"]
            if command != "mix"
            else ["--max-requests", "4000", "--json", "--mix", "1:0"]
        )
        status, out, _ = run(capsys, command, "--on", "dram", "--cpu-node", "1", "--mem-node", "0,1", *short)
        assert status == 0
        placed = [row["overrides"] for row in json.loads(out)]
        assert {row.split()[1] for row in placed} == {"nodes.memory=0", "nodes.memory=1"}, command


def test_no_such_socket_is_said_before_anything_runs(capsys, tmp_path):
    table = tmp_path / "table.csv"
    status, out, err = run(capsys, "random", "--mem-node", "3", "--out", str(table))
    assert (status, out) == (2, "")
    assert "mem_node = 3: no socket; use 0, 1, both" in err
    assert not table.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mix", "--mix", "2-1"], '"2-1" is no ratio'),
        (["mix", "--mix", "1:2"], "mix = 1:2: each write of a store reads its line, too"),
        (["mix", "--region", "2GiB"], "region = 2147483648: must be from 64"),
        (["loaded", "--threads", "24"], "threads = 25: must be 1 to 24"),
        (["loaded", "--delay", "-1"], "delay = '-1': expected whole numbers"),
    ],
)
def test_bad_loads_are_refused(capsys, arguments, message):
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "")
    assert message in err


def test_bandwidth_rises_and_latency_with_it():
    table = bench.loaded("dram", delay=[0, 300, 20000], max_requests=200_000)
    assert table["bandwidth_mib_s"].is_sorted(descending=True)
    assert table["latency_mean_ns"].is_sorted(descending=True)
    assert table["delay"].to_list() == [0, 300, 20000]


def test_memory_mode_is_volatile_and_says_so(capsys):
    short = ["--max-requests", "4000", "--on", "memory-mode"]
    warned = "memory-mode is volatile"
    assert warned in run(capsys, "persist-latency", *short)[2]
    assert warned in run(capsys, "random", "--op", "store+clwb", *short)[2]
    assert warned not in run(capsys, "random", "--op", "load", *short)[2]
    assert warned not in run(capsys, "persist-latency", "--max-requests", "4000", "--on", "optane")[2]


def test_a_budget_that_dimms_refuse_is_named(capsys):
    short = ["stride", "--on", "optane-ni", "--op", "ntstore", "--threads", "4", "--max-requests", "20000", "--json"]
    outcomes = {
        watts: run(capsys, *short, "--set", f"optane.power.budget={watts}") for watts in ("15W", "10W", "12000mW")
    }
    assert "optane.power.budget = 10W: DIMMs take 12W or more, and stay at 15W" in outcomes["10W"][2]
    assert outcomes["15W"][2] == "" == outcomes["12000mW"][2]
    rate = {watts: json.loads(out)[0]["bandwidth_mib_s"] for watts, (_, out, _) in outcomes.items()}
    assert rate["10W"] == rate["15W"] > rate["12000mW"]


def test_memory_mode_needs_dram():
    with pytest.raises(XplineError, match="no DRAM to cache Optane in"):
        Platform("memory-mode", set={"volatile": "none"})


def test_misses_of_the_near_memory_are_a_column():
    table = bench.mix("memory-mode", mix="1:0", threads=2, max_requests=50_000)
    assert table["near_miss_ratio"].item() == 0  # everything fits
    assert bench.mix("optane", mix="1:0", threads=2, max_requests=50_000)["near_miss_ratio"].item() is None


def still(case):
    """The case without refreshes of DRAM."""
    return replace(case, overrides=(*case.overrides, "dram.refresh_halts=false"))


def test_the_emulator_does_to_its_machine_what_was_set():
    """FAST'20, section 4.1: 300 ns on each load, writes at an eighth of the bandwidth.

    Without refreshes of DRAM, of which slower loads meet others.
    """
    loads, writes = ([still(case) for case in cases.values()] for cases in (EMULATED_LOADS, EMULATED_WRITES))
    results = run_cases([*loads, *writes], Platforms())
    read = [results[case]["latency_mean_ns"] for case in loads]
    write = [results[case]["bandwidth_mib_s"] for case in writes]
    assert read[0] - read[1] == pytest.approx(300, abs=1)
    assert write[0] / write[1] == pytest.approx(1 / 8, rel=0.15)
