"""Timelines: what a reader of the Chrome trace format finds in them."""

import gzip
import json
from collections import defaultdict
from pathlib import Path

import pytest

from xpline import XplineError, _native, bench, timeline

#: Rounding of times in microseconds: far below a picosecond.
CLOSE = 1e-8


def read(name):
    """The processes of a trace file by name, each with its slices by row."""
    trace = json.loads(gzip.decompress(Path(name).read_bytes()))
    events = trace["traceEvents"]
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    rows = defaultdict(lambda: defaultdict(list))
    for event in events:
        assert event["ph"] in "MX"
        if event["ph"] == "X":
            assert event["dur"] >= 0
            rows[names[event["pid"]]][event["tid"]].append(event)
    return trace["otherData"], rows


def forest(slices):
    """Slices of a row as trees; fails where one begins inside another and ends outside."""
    roots, open_ = [], []
    for event in sorted(slices, key=lambda event: (event["ts"], -event["dur"])):
        node = (event, [])
        while open_ and open_[-1][0]["ts"] + open_[-1][0]["dur"] <= event["ts"] + CLOSE:
            open_.pop()
        if open_:
            end = open_[-1][0]["ts"] + open_[-1][0]["dur"]
            assert event["ts"] + event["dur"] <= end + CLOSE, (event, open_[-1][0])
        (open_[-1][1] if open_ else roots).append(node)
        open_.append(node)
    return roots


def adds_up(node):
    event, children = node
    if children:
        assert sum(child["dur"] for child, _ in children) == pytest.approx(event["dur"], abs=CLOSE)
    for child in children:
        adds_up(child)


CASES = {
    "loads": ["random", "--on", "optane-ni", "--op", "load", "--size", "256", "--threads", "4"],
    "ntstores": ["random", "--on", "optane", "--op", "ntstore", "--size", "64", "--threads", "8"],
    "flushes": ["stride", "--on", "dram", "--op", "store+clwb", "--size", "256", "--threads", "2"],
    "remote": ["random", "--on", "optane-remote", "--op", "ntstore", "--size", "256", "--threads", "4"],
    "fenced": ["latency", "--on", "optane", "--op", "ntstore", "--pattern", "random"],
}


@pytest.mark.parametrize("case", CASES)
def test_slices_nest_and_times_add_up(xpline, case):
    code, _, err = xpline("bench", *CASES[case], "--max-requests", "30000", "--timeline", "t.json.gz")
    assert (code, err) == (0, "")
    about, rows = read("t.json.gz")
    assert about["platform"] == CASES[case][2] and about["experiment"] == CASES[case][0]
    threads = int(about["threads"])
    assert {f"core {core}" for core in range(threads)} <= set(rows)
    requests = 0
    for name, row in ((name, row) for name, process in rows.items() for row in process.values()):
        for root in forest(row):
            if "address" in root[0].get("args", {}):
                requests += 1
                adds_up(root)
                assert root[1], f"{root[0]} on {name} passes through nothing"
    assert requests >= 2 * 128 * threads


def test_the_row_is_that_of_a_run_without(xpline):
    command = ["bench", "random", "--on", "optane", "--op", "ntstore", "--size", "64", "--threads", "4", "--json"]
    _, without, _ = xpline(*command)
    _, out, _ = xpline(*command, "--timeline", "t.json")
    assert json.loads(out) == json.loads(without)
    assert json.loads(Path("t.json").read_text())["displayTimeUnit"] == "ns"


def test_what_a_point_waits_for_can_be_seen(xpline):
    """Eight threads of small random writes to one DIMM wait at its queue; single loads do not wait for the media."""

    def share(part, *arguments):
        xpline("bench", *arguments, "--timeline", "t.json.gz")
        _, rows = read("t.json.gz")
        cores = [process for name, process in rows.items() if name.startswith("core")]
        slices = [event for process in cores for row in process.values() for event in row]
        waits = sum(event["dur"] for event in slices if event["name"] == part)
        return waits / sum(event["dur"] for event in slices if "args" in event)

    crowd = share(
        "wait: room in write pending queue",
        *("random", "--on", "optane-ni", "--op", "ntstore", "--size", "64", "--threads", "8"),
    )
    alone = share("wait: media port", "latency", "--on", "optane-ni", "--op", "load")
    assert crowd > 0.3 and alone < 0.05


def test_the_same_run_gives_the_same_file(xpline):
    command = ["bench", "random", "--on", "optane-ni", "--threads", "2", "--max-requests", "20000", "--timeline"]
    xpline(*command, "one.json.gz")
    xpline(*command, "two.json.gz")
    assert Path("one.json.gz").read_bytes() == Path("two.json.gz").read_bytes()


@pytest.mark.parametrize(("level", "track"), [("core", "core 0"), ("memory", "memory 0")])
def test_a_replay_has_one_too(xpline, level, track):
    lines = [f"{'LD' if number % 3 else 'ST'} {hex(number * 4096)}" for number in range(3000)]
    Path("a.trace").write_text("\n".join(lines) + "\n")
    code, *_ = xpline("replay", "a.trace", "--on", "optane", "--level", level, "--timeline", "t.json.gz")
    assert code == 0
    about, rows = read("t.json.gz")
    assert about["trace"] == "a.trace" and track in rows and "optane DIMM 5" in rows
    for process in rows.values():
        for row in process.values():
            for root in forest(row):
                if "args" in root[0]:
                    adds_up(root)


def test_a_recorded_program_has_one_too(xpline):
    sites = [{"module": "app", "offset": 0, "call": None, "frames": []}]
    about = {"command": ["app", "-v"], "sites": sites, "totals": {"files": [], "pages": []}, "cut": False}
    stores = [
        (thread, kind, line * 64, 64, 0, 0) for line in range(300) for kind in ("store", "clwb") for thread in (0, 1)
    ]
    _native.write_recording("a.xplr", json.dumps(about), stores)
    code, out, _ = xpline("run", "--replay", "a.xplr", "--on", "optane", "--no-advice", "--timeline", "t.json.gz")
    assert (code, "t.json.gz" in out) == (0, False)
    about, rows = read("t.json.gz")
    assert about == {"platform": "optane", "command": "app -v"}
    assert {"core 0", "core 1"} <= set(rows)
    flushed = [event for row in rows["core 0"].values() for event in row if event["name"] == "clwb"]
    assert len(flushed) > 50
    for process in rows.values():
        for row in process.values():
            for root in forest(row):
                if "address" in root[0].get("args", {}):
                    adds_up(root)


def test_a_workload_has_one_too(xpline):
    Path("w.yaml").write_text("a: {args: {exec_mode: custom, custom_operations: 'r_64,w_64_cache'}}")
    code, *_ = xpline("bench", "--workload", "w.yaml", "--max-requests", "20000", "--timeline", "t.json.gz")
    assert code == 0
    about, rows = read("t.json.gz")
    assert about["workload"] == "a"
    assert {"load", "clwb"} <= {event["name"] for row in rows["core 0"].values() for event in row}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["random", "--timeline", "t.txt"], "--timeline t.txt: a timeline is a file that ends in .json.gz or .json"),
        (["random", "--size", "64,128", "--timeline", "t.json"], "--timeline t.json: shows one point on one platform"),
        (
            ["random", "--on", "dram,optane", "--timeline", "t.json"],
            "--timeline t.json: shows one point on one platform",
        ),
        (["random", "--timeline", "none/t.json"], "none/t.json: the folder none does not exist"),
    ],
)
def test_what_cannot_be_shown_is_refused_before_the_run(xpline, arguments, problem):
    code, out, err = xpline("bench", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"xpline: {problem}")
    assert not list(Path().iterdir())


def test_points_hold_their_timeline_where_asked():
    rows = []
    point = {"experiment": "random", "op": "load", "size": 64, "threads": 1, "max_requests": 10_000, "timeline": True}
    bench.run("dram", [point], progress=lambda _, row: rows.append(row))
    assert rows[0]["timeline"][0][0]["name"] == "load"
    with pytest.raises(XplineError, match=r"ends in \.json"):
        timeline.write(Path("t.csv"), rows[0]["timeline"], {})
