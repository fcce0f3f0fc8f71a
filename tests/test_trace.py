"""``xpline replay`` and ``xpline trace`` from the command line, and the same from Python."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from xpline import trace
from xpline.errors import XplineError

ROOT = Path(__file__).parent.parent


#: A trace of each text format, of the same two requests where it can be.
TRACES = {
    "ramulator2": "LD 0x1000\nST 0x2000\n",
    "ramulator2-rw": "R 0,64,0\nW 1,0,0\n",
    "ramulator2-o3": "5 4096 8192\n",
    "dramsim3": "0x1000 READ 3\n0x2000 WRITE 7\n",
    "vans": "0x1000 R\n0x2000 W\n",
    "lackey": "I  400000,4\n L 1000,8\n S 2000,8\n",
}


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.trace"
    path.write_text("".join(f"{64 * line:#x} {'WRITE' if line % 4 else 'READ'} {3 * line}\n" for line in range(4000)))
    return path


def test_the_formats_are_those_of_the_core(xpline, small):
    err = xpline("replay", small, "--format", "sqlite")[2]
    assert f"known are auto, {', '.join(trace.FORMATS)}" in err


@pytest.mark.parametrize("name", TRACES)
def test_every_format_is_found_out_and_replayed(xpline, tmp_path, name):
    path = tmp_path / "t"
    path.write_text(TRACES[name])
    geometry = ["--geometry", "2,128,1"] if name == "ramulator2-rw" else []
    code, out, err = xpline("replay", path, "--on", "optane-ni", "--json", *geometry)
    assert (code, err) == (0, "")
    (row,) = json.loads(out)
    assert (row["format"], row["reads"], row["writes"]) == (name, 1, 1)
    assert row["time_ns"] > 0


def test_the_result_is_the_same_however_it_is_handed_out(xpline, small, tmp_path):
    rows = json.loads(xpline("replay", small, "--on", "optane,dram", "--json")[1])
    frame = trace.replay(["optane", "dram"], small)
    assert frame.to_dicts() == rows
    assert xpline("replay", small, "--on", "optane,dram", "--csv")[1] == frame.write_csv()
    for suffix, read in {"parquet": pl.read_parquet, "csv": pl.read_csv, "json": pl.read_json}.items():
        out = tmp_path / f"r.{suffix}"
        assert xpline("replay", small, "--on", "optane,dram", "--out", out)[0] == 0
        assert read(out)["time_ns"].to_list() == frame["time_ns"].to_list()


def test_the_terminal_shows_a_column_a_platform(xpline, small):
    code, out, err = xpline("replay", small, "--on", "optane-ni,dram")
    assert (code, err) == (0, "")
    lines = [re.split(r" {2,}", line) for line in out.splitlines()]
    assert lines[0] == ["platform", "optane-ni", "dram"]
    assert ["requests", "4,000", "4,000"] in lines
    assert not any(line[0].startswith("L1d") for line in lines)
    assert "L1d hits" in xpline("replay", small, "--level", "core")[1]


def test_the_reference_names_every_column(small):
    rows = (ROOT / "docs/reference/replay.md").read_text().splitlines()
    cells = [row.split("|")[1] for row in rows if row.startswith("| `")]
    assert sorted(re.findall(r"`(\w+)`", " ".join(cells))) == sorted(trace.replay("dram", small).columns)


def test_what_wraps_or_is_skipped_is_said(xpline, tmp_path):
    path = tmp_path / "t"
    path.write_text("I  400000,4\n L 7fff00001000,8\n")
    _, _, err = xpline("replay", path, "--level", "memory")
    assert "1 addresses lie beyond the 128 GiB" in err
    assert "1 records are no requests" in err


def test_options_change_what_they_say(small):
    def time(**options):
        return trace.replay("optane-ni", small, **options)["time_ns"].item()

    assert time(in_flight=1) > time()
    assert time(paced=True, clock="100MHz") >= 3 * 3999 * 10
    (row,) = trace.replay_rows("optane-ni", small, threads_map="round-robin:3", level="core")
    assert (row["threads"], row["level"]) == (3, "core")


def test_conversion_there_and_back(xpline, small, tmp_path):
    own, back = tmp_path / "t.xpt.zst", tmp_path / "back.trace"
    code, out, _ = xpline("trace", "convert", small, own, "--clock", "1GHz")
    assert code == 0
    assert out.startswith("dramsim3 -> xpline: 4,000 records, ")
    assert own.stat().st_size < small.stat().st_size / 5
    assert xpline("trace", "convert", own, back, "--to", "dramsim3")[0] == 0
    assert back.read_text() == small.read_text()
    assert sorted(tmp_path.iterdir()) == sorted([small, own, back])
    assert trace.replay("optane", own, paced=True)["time_ns"].item() >= 3999 * 3


def test_a_trace_in_numbers(xpline, small, tmp_path):
    found = trace.info(small)
    assert found["kinds"] == {"load": 1000, "store": 3000}
    assert (found["lowest_address"], found["end_address"], found["bytes"]) == (0, 256_000, 256_000)
    code, out, _ = xpline("trace", "info", small)
    assert code == 0
    assert "records       4,000\n" in out
    assert "times         0 to 11,997 ticks of unknown length\n" in out
    assert json.loads(xpline("trace", "info", small, "--json")[1]) == found


def test_lossy_leaves_out_what_does_not_fit(xpline, tmp_path):
    source, target = tmp_path / "t", tmp_path / "u"
    source.write_text("I  400000,4\n L 103c,8\n S 2000,64\n")
    code, out, err = xpline("trace", "convert", source, target, "--to", "vans")
    assert (code, out) == (2, "")
    assert "record 1, a compute, cannot be written as vans, which has no compute ops" in err
    assert not target.exists()
    code, out, _ = xpline("trace", "convert", source, target, "--to", "vans", "--lossy")
    assert code == 0
    assert target.read_text() == "0x1000 R\n0x1040 R\n0x2000 W\n"
    assert "of 3 records, 1 lost something and 1 were left out" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("replay nowhere", "nowhere: cannot be read: No such file or directory"),
        ("replay .", ".: is a folder"),
        ("replay bad", "bad: line 2, byte 8: `LX` is neither LD nor ST"),
        ("replay mixed", "mixed: line 2, byte 8: `0x40` is neither LD nor ST (this is a line of a vans trace"),
        ("replay cut", "cut: line 2, byte 13: the file ends within a line"),
        ("replay empty", "empty: holds nothing"),
        ("replay vectors", "vectors: line 1, byte 2: `0,1` names a channel"),
        ("replay vectors --geometry x", "--geometry: `x`: write how many"),
        ("replay good --format dramsim3", "good: line 1, byte 0: `LD` is not an address"),
        ("replay good --format sqlite", "--format: no format `sqlite`"),
        ("replay good --threads-map all", "--threads-map: `all`: write trace, one"),
        ("replay good --threads-map round-robin:25", "takes 25 cores, and the platform has 24"),
        ("replay good --level cache", "--level: `cache`: must be core or memory"),
        ("replay good --paced", "--paced: the trace does not say how long a tick"),
        ("replay good --clock fast", "--clock: `fast`: write a frequency"),
        ("replay good --in-flight 0", "--in-flight"),
        ("replay good --on nowhere", "no platform `nowhere`"),
        ("replay good --json --csv", "--json and --csv: choose one"),
        ("replay good --out t.xlsx", "t.xlsx: the suffix says how to write a table"),
        ("replay good --out nowhere/t.csv", "nowhere/t.csv: the folder nowhere does not exist"),
        ("trace convert nowhere t", "nowhere: cannot be read"),
        ("trace convert bad t", "bad: line 2, byte 8"),
        ("trace convert bad t.zst", "bad: line 2, byte 8"),
        ("trace convert good t --to csv", "--to: no format `csv`"),
        ("trace convert good t --to ramulator2-rw", "t: ramulator2-rw is read only"),
        ("trace convert good nowhere/t", "nowhere/t: the folder nowhere does not exist"),
        ("trace convert good .", ".: is a folder"),
        ("trace info bad", "bad: line 2, byte 8"),
        ("trace sideways", "sideways"),
    ],
)
def test_bad_input_is_refused_and_nothing_written(xpline, tmp_path, arguments, message):
    files = {
        "good": "LD 0x40\nST 0x80\n",
        "bad": "LD 0x40\nLX 0x80\n",
        "mixed": "LD 0x40\n0x40 R\n",
        "cut": "LD 0x40\nLD 0x",
        "empty": "",
        "vectors": "R 0,1\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    code, out, err = xpline(*arguments.split())
    assert code == 2
    assert message in err
    assert out == ""
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == files


def test_an_old_file_stays_when_a_conversion_fails(xpline, tmp_path):
    (tmp_path / "bad").write_text("LD 0x40\n" * 100_000 + "what\n")
    (tmp_path / "t").write_text("old")
    assert xpline("trace", "convert", "bad", "t")[0] == 2
    assert (tmp_path / "t").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2


def test_progress_is_told_and_may_stop_the_work(tmp_path):
    path = tmp_path / "t"
    path.write_text("".join(f"LD {4096 * line:#x}\n" for line in range(1_000_000)))
    told = []

    def stop_at_once(read, total):
        told.append((read, total))
        raise XplineError("enough")

    with pytest.raises(XplineError, match="enough"):
        trace.replay("optane", path, level="core", progress=stop_at_once)
    ((read, total),) = told
    assert 0 < read < total == path.stat().st_size


@pytest.mark.parametrize("command", ["replay /dev/stdin", "trace info /dev/stdin", "trace convert /dev/stdin t.xpt"])
def test_ctrl_c_ends_with_130(tmp_path, command, program):
    """The trace is a pipe that never ends."""
    process = subprocess.Popen(
        [program, *command.split()], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    lines = b"".join(b"LD %#x\n" % (64 * line) for line in range(20_000))
    process.stdin.write(lines)
    process.stdin.flush()
    deadline = time.monotonic() + 20
    interrupted = False
    while time.monotonic() < deadline and process.poll() is None:
        try:
            process.stdin.write(lines)
            process.stdin.flush()
        except BrokenPipeError:
            break
        if not interrupted and time.monotonic() > deadline - 18:
            process.send_signal(signal.SIGINT)
            interrupted = True
    assert process.wait(20) == 130
    assert process.stdout.read() == b""
    assert not any(tmp_path.iterdir())


def test_the_comparison_with_others_prints_the_ratio(tmp_path, program):
    """Stand-ins for the other simulators look at the trace they are given, and take their time."""
    ramulator2, dramsim3 = tmp_path / "ramulator2", tmp_path / "dramsim3"
    ramulator2.write_text('#!/bin/sh\nset -e\ngrep -q "impl: LoadStoreTrace" "$2"\ngrep -q "path: /" "$2"\nsleep 1\n')
    dramsim3.write_text('#!/bin/sh\nset -e\ntest "$2 $3" = "-c 1000"\ngrep -q "^0x[0-9a-f]* READ 7$" "$5"\nsleep 1\n')
    for other in (ramulator2, dramsim3):
        other.chmod(0o755)
    options = ["--requests", "100", "--writes", "0", "--runs", "1", "--xpline", program, "--dramsim3-config", "d.ini"]
    command = [sys.executable, ROOT / "benches/compare-replay", *options]
    done = subprocess.run(
        [*command, "--ramulator2", ramulator2, "--dramsim3", dramsim3], capture_output=True, text=True, check=True
    )
    heading, own, *others = done.stdout.splitlines()
    assert heading == "100 requests, random, 0% writes; best of 1"
    assert own.split()[0] == "xpline"
    assert [re.sub(r"[0-9.]+", "N", " ".join(line.split())) for line in others] == [
        "ramulatorN N s xpline is N times as fast",
        "dramsimN N s xpline is N times as fast",
    ]
    failed = subprocess.run([*command, "--ramulator2", "nowhere"], capture_output=True, text=True)
    assert failed.returncode == 2
    assert "nowhere: not there, or not a program" in failed.stderr


def test_ctrl_c_does_not_wait_for_a_pipe_that_says_nothing(program):
    process = subprocess.Popen(
        [program, "replay", "/dev/stdin"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130


@pytest.mark.parametrize("level", ["core", "memory"])
def test_memory_does_not_grow_with_the_trace(tmp_path, level, program):
    # Asked of a small process: a child's peak counts what its parent held when it was forked.
    ask = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )

    def peak_mib(requests):
        path = tmp_path / f"{requests}.trace"
        path.write_text("".join(f"LD {64 * line:#x}\n" for line in range(requests)))
        command = [sys.executable, "-c", ask, program, "replay", path, "--level", level]
        return int(subprocess.run(command, capture_output=True, check=True).stdout) / 1024

    few, many = peak_mib(1000), peak_mib(1_000_000)
    assert many < 300
    assert many < few + 30  # records of the whole trace would take more
