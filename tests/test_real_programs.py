"""Real programs run to a correct end, and LATTester's loops in C give what the benchmark gives. Skipped without the
tracer."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from xpline import XplineError, bench, tracer
from xpline.advice import advise
from xpline.run import Run, run_program

PROGRAMS = Path(__file__).parent / "programs"


def _installed() -> bool:
    try:
        tracer.locate()
    except XplineError:
        return False
    return shutil.which("cc") is not None


pytestmark = pytest.mark.skipif(
    not _installed(), reason="the tracer is not installed (`xpline tracer install`), or there is no C compiler"
)


def build(name: str, folder: Path, *libraries: str) -> str:
    """Compile one of the programs; skip the test where its libraries are not there."""
    target = folder / name
    command = ["cc", "-O2", "-g", PROGRAMS / f"{name}.c", "-o", target, *(f"-l{library}" for library in libraries)]
    built = subprocess.run(command, capture_output=True, text=True)
    if built.returncode and libraries and ("fatal error" in built.stderr or "cannot find" in built.stderr):
        pytest.skip(f"{' and '.join(libraries)} cannot be compiled against: install Debian's -dev packages")
    assert built.returncode == 0, built.stderr
    return str(target)


def needed(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found


@pytest.fixture
def pmem(tmp_path: Path) -> Path:
    (tmp_path / "pmem").mkdir()
    return tmp_path / "pmem"


#: Op, pattern, bytes of an access.
LOOPS = [
    ("load", "sequential", 64),
    ("load", "random", 64),
    ("load", "random", 256),
    ("ntstore", "sequential", 64),
    ("ntstore", "random", 64),
    ("ntstore", "random", 256),
    ("store+clwb", "sequential", 64),
    ("store+clwb", "random", 256),
]


@pytest.mark.parametrize("platform", ["optane-ni", "optane"])
def test_lattesters_loops_give_what_the_benchmark_gives(platform: str, pmem: Path, tmp_path: Path) -> None:
    program = build("lattester", tmp_path)
    for op, pattern, size in LOOPS:
        accesses = (12 << 20) // size
        run = run_program(
            [program, op, pattern, str(size), str(accesses), str(pmem / "file")], pmem=[pmem], on=platform
        )
        bandwidth = accesses * size / 2**20 / (run.main.time_ns * 1e-9)
        if pattern == "random":
            row = bench.random(platform, op=op, size=[size], threads=1)
        else:
            row = bench.stride(platform, op=op, size=[size], stride=[size], threads=1)
        what = f"{op} {pattern} {size} on {platform}"
        assert bandwidth == pytest.approx(row["bandwidth_mib_s"][0], rel=0.05), what
        for ours, theirs in ((run.main.ewr, row["ewr"][0]), (run.main.err, row["err"][0])):
            assert ours == (theirs if theirs is None else pytest.approx(theirs, rel=0.05)), what


def test_libpmemobj_breaks_no_rule_about_lost_data(pmem: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = build("pmemobj", tmp_path, "pmemobj", "pmem")
    monkeypatch.setenv("PMEM_IS_PMEM_FORCE", "1")
    run = run_program([program, str(pmem / "pool")], pmem=[pmem], folder=tmp_path)
    assert run.exit_status == 0
    assert not [finding.where for finding in advise(run) if finding.rule.correctness]
    assert {"main", "push"} & {line.function for line in run.lines[:20]}, "the program's own stores are named"
    flushes = sum(line.facts["flushes"] for line in run.lines)
    assert flushes > 4000 and sum(line.facts["fences"] for line in run.lines) > 4000


def test_lmdb(pmem: Path, tmp_path: Path) -> None:
    run = run_program([build("lmdb", tmp_path, "lmdb"), str(pmem)], pmem=[pmem], folder=tmp_path)
    assert run.exit_status == 0
    assert any(line.module and "liblmdb" in line.module for line in run.lines)
    synced = [line for line in run.lines if line.call == "msync"]
    assert synced and synced[0].target == str(pmem / "data.mdb")
    assert not [finding.where for finding in advise(run) if finding.rule.correctness]


def test_sqlite(pmem: Path, tmp_path: Path) -> None:
    sqlite = needed("sqlite3")
    script = tmp_path / "bulk.sql"
    script.write_text(
        f"""
        .output {tmp_path / "said"}
        PRAGMA journal_mode=WAL;
        PRAGMA mmap_size=268435456;
        CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b REAL);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<20000)
            INSERT INTO t SELECT i, 'row '||i, i*0.5 FROM n;
        CREATE INDEX ta ON t(a);
        UPDATE t SET b=b+1 WHERE id%7=0;
        SELECT count(*), sum(id) FROM t;
        PRAGMA wal_checkpoint(TRUNCATE);
        PRAGMA integrity_check;
        """.replace("        ", "")
    )
    run = run_program([sqlite, "-init", str(script), str(pmem / "db"), ".quit"], pmem=[pmem])
    assert run.exit_status == 0
    assert (tmp_path / "said").read_text().split() == ["wal", "268435456", "20000|200010000", "0|0|0", "ok"]
    written = {line.target for line in run.lines if line.call == "write"}
    assert written >= {str(pmem / "db"), str(pmem / "db-wal")}
    assert any(line.facts["loads"] and line.module and "sqlite" in line.module for line in run.lines)


def test_redis_with_an_append_only_file(pmem: Path) -> None:
    server, client, benchmark = needed("redis-server"), needed("redis-cli"), needed("redis-benchmark")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    load = f"""
        until {client} -p {port} ping >/dev/null 2>&1; do sleep 0.1; done
        {benchmark} -p {port} -t set -n 20000 -c 20 -r 100000 -d 100 -q >/dev/null
        {client} -p {port} dbsize > {pmem.parent}/keys
        {client} -p {port} shutdown nosave
    """
    clients = subprocess.Popen(["sh", "-c", load])
    options = [
        "--port",
        port,
        "--appendonly",
        "yes",
        "--save",
        "",
        "--dir",
        str(pmem),
        "--logfile",
        str(pmem.parent / "log"),
    ]
    run = run_program([server, *options], pmem=[pmem])
    assert clients.wait(timeout=60) == 0
    assert run.exit_status == 0
    keys = int((pmem.parent / "keys").read_text())
    appended = next(path for path in pmem.rglob("*.incr.aof")).read_bytes()
    assert appended.count(b"\r\nSET\r\n") == 20_000 and 15_000 < keys <= 20_000
    written = [line for line in run.lines if line.call == "write" and line.target and line.target.endswith(".incr.aof")]
    assert sum(line.facts["ntstore_bytes"] for line in written) == len(appended)


def test_the_cost_of_tracing_is_bounded(pmem: Path, tmp_path: Path) -> None:
    program = build("lattester", tmp_path)
    command = [program, "store+clwb", "sequential", "64", "500000", str(pmem / "file")]
    run: Run = run_program(command, pmem=[pmem])
    begin = time.monotonic()
    run = run_program(command, pmem=[pmem])
    took = time.monotonic() - begin
    # Two and a half million accesses: a machine that takes none of them a second is broken, one that others share is
    # not.
    assert run.totals["accesses"] >= 1_000_000 and took < 30, f"{took:.1f} s of {os.cpu_count()} CPUs"
