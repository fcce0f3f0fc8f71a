"""Real programs run to a correct end, and LATTester's loops in C give what the benchmark gives. Skipped without the
tracer."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from xpline import bench
from xpline.advice import Finding, advise
from xpline.run import Run, run_program

PROGRAMS = Path(__file__).parent / "programs"


pytestmark = pytest.mark.usefixtures("tracer")

Compile = Callable[..., str]


def needed(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found


def written_by(run: Run, function: str, target: str = "") -> float:
    """The share of the bytes written, those to files whose name ends so, that a function or what it called wrote."""
    whole = part = 0
    for line in run.lines:
        if not (line.target or "").endswith(target):
            continue
        whole += line.stored_bytes
        for caller in line.callers:
            if function in {line.function, *(name for name, _, _ in caller.frames)}:
                part += caller.facts["store_bytes"] + caller.facts["ntstore_bytes"]
    assert whole, f"nothing was written to {target or 'memory'}"
    return part / whole


def lines_to_change(findings: list[Finding], file: str) -> set[str]:
    """The source lines of findings, which all are in a file."""
    places = {finding.where: finding.line.source for finding in findings}
    assert all(source and Path(source[0]).name == file for source in places.values()), places
    text = (PROGRAMS / file).read_text().splitlines()
    return {text[source[1] - 1].strip() for source in places.values() if source}


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
def test_lattesters_loops_give_what_the_benchmark_gives(
    platform: str, pmem: Path, tmp_path: Path, compiled: Compile
) -> None:
    program = compiled(PROGRAMS / "lattester.c")
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


def test_libpmemobj_breaks_no_rule_about_lost_data(
    pmem: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled: Compile
) -> None:
    program = compiled(PROGRAMS / "pmemobj.c", "pmemobj", "pmem")
    monkeypatch.setenv("PMEM_IS_PMEM_FORCE", "1")
    run = run_program([program, str(pmem / "pool")], pmem=[pmem], folder=tmp_path, callers=True)
    assert run.exit_status == 0
    findings = advise(run)
    assert not [finding.where for finding in findings if finding.rule.correctness]
    assert {"main", "push"} & {line.function for line in run.lines[:20]}, "the program's own stores are named"
    # The rest is the empty heap, and the logs of transactions besides what they log.
    assert written_by(run, "push") > 0.5 and written_by(run, "pmemobj_create") > 0.1
    assert 0.1 < written_by(run, "pmemobj_tx_add_range") < written_by(run, "pmemobj_tx_commit") < 0.5
    stored = {(line.source or ("", 0))[1] for line in run.lines if line.function == "push" and line.stored_bytes}
    source = (PROGRAMS / "pmemobj.c").read_text().splitlines()
    assert {source[number - 1].strip() for number in stored} >= {"D_RW(node)->value = value;", "D_RW(root)->count++;"}
    assert lines_to_change(findings, "pmemobj.c")
    flushes = sum(line.facts["flushes"] for line in run.lines)
    assert flushes > 4000 and sum(line.facts["fences"] for line in run.lines) > 4000


@pytest.fixture(scope="session")
def data_store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The example of libpmemobj that has a map of each kind, from Debian's package."""
    examples = Path("/usr/share/doc/libpmemobj-dev/examples")
    if not (examples / "map/data_store.c").is_file():
        pytest.skip("libpmemobj's examples are not there: install libpmemobj-dev")
    folders = [PROGRAMS, examples, *(examples / name for name in ("map", "tree_map", "hashmap", "list_map"))]
    sources = [examples / "map/data_store.c", examples / "map/map.c"]
    for pattern in ("map/map_*.c", "tree_map/*.c", "hashmap/*.c", "list_map/*.c"):
        sources += sorted(examples.glob(pattern))
    program = tmp_path_factory.mktemp("examples") / "data_store"
    command = ["cc", "-g", "-O1", "-w", *(f"-I{folder}" for folder in folders), *sources, "-o", program]
    subprocess.run([*command, "-lpmemobj", "-lpmem"], check=True)
    return str(program)


@pytest.mark.parametrize("kind", ["ctree", "btree", "rbtree", "hashmap_tx", "hashmap_atomic", "hashmap_rp", "skiplist"])
def test_libpmemobjs_examples_break_no_rule_about_lost_data(
    kind: str, data_store: str, pmem: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PMEM_IS_PMEM_FORCE", "1")
    run = run_program([data_store, kind, str(pmem / "pool"), "300"], pmem=[pmem], folder=tmp_path)
    assert run.exit_status == 0 and run.totals["accesses"] > 100_000
    assert not [(finding.rule.name, finding.where) for finding in advise(run) if finding.rule.correctness]


def test_rocksdb(pmem: Path, tmp_path: Path) -> None:
    benchmark, tool = needed("db_bench"), needed("ldb")
    options = ["--benchmarks=fillseq,overwrite,readrandom", "--num=10000", "--value_size=100", f"--db={pmem / 'db'}"]
    command = [benchmark, *options, "--mmap_read=1", "--compression_type=none"]
    run = run_program(command, pmem=[pmem], folder=tmp_path, callers=True)
    assert run.exit_status == 0
    counted = subprocess.run([tool, f"--db={pmem / 'db'}", "dump", "--count_only"], capture_output=True, text=True)
    assert "Keys in range: 10000" in counted.stdout
    log = [line for line in run.lines if line.call == "write" and line.target and line.target.endswith(".log")]
    assert sum(line.facts["ntstore_bytes"] for line in log) > 20_000 * 100
    stacks = [{function for function, _, _ in caller.frames} for line in log for caller in line.callers]
    assert any(any("rocksdb::DBImpl" in (function or "") for function in stack) for stack in stacks), stacks[:1]
    assert not [finding.where for finding in advise(run) if finding.rule.correctness]


def test_lmdb(pmem: Path, tmp_path: Path, compiled: Compile) -> None:
    program = compiled(PROGRAMS / "lmdb.c", "lmdb")
    run = run_program([program, str(pmem)], pmem=[pmem], folder=tmp_path, callers=True)
    assert run.exit_status == 0
    assert written_by(run, "put_hundred") > 0.99 and written_by(run, "mdb_put") > 0.9
    assert 0.005 < written_by(run, "mdb_txn_commit") < 0.1
    findings = advise(run)
    assert lines_to_change(findings, "lmdb.c") <= {
        "mdb_put(transaction, database, &key, &value, 0);",
        "return mdb_txn_commit(transaction);",
    }
    assert any(line.module and "liblmdb" in line.module for line in run.lines)
    synced = [line for line in run.lines if line.call == "msync"]
    assert synced and synced[0].target == str(pmem / "data.mdb")
    assert not [finding.where for finding in findings if finding.rule.correctness]


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
    run = run_program([sqlite, "-init", str(script), str(pmem / "db"), ".quit"], pmem=[pmem], callers=True)
    assert run.exit_status == 0
    assert (tmp_path / "said").read_text().split() == ["wal", "268435456", "20000|200010000", "0|0|0", "ok"]
    written = {line.target for line in run.lines if line.call == "write"}
    assert written >= {str(pmem / "db"), str(pmem / "db-wal")}
    library = next(line.module for line in run.lines if line.facts["loads"] and "sqlite" in (line.module or ""))
    assert library and written_by(run, "sqlite3_step") > 0.99
    exported = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True).stdout
    for file, function in {"/db-wal": "sqlite3WalFrames", "/db": "sqlite3WalCheckpoint"}.items():
        if function in exported:
            assert written_by(run, function, file) > 0.99


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
    run = run_program([server, *options], pmem=[pmem], callers=True)
    assert clients.wait(timeout=60) == 0
    assert run.exit_status == 0
    keys = int((pmem.parent / "keys").read_text())
    appended = next(path for path in pmem.rglob("*.incr.aof")).read_bytes()
    assert appended.count(b"\r\nSET\r\n") == 20_000 and 15_000 < keys <= 20_000
    written = [line for line in run.lines if line.call == "write" and line.target and line.target.endswith(".incr.aof")]
    assert sum(line.facts["ntstore_bytes"] for line in written) == len(appended)
    assert written_by(run, "flushAppendOnlyFile", ".incr.aof") == 1.0
    assert max(run.lines, key=lambda line: line.facts["media_written_bytes"]) in written


def test_the_cost_of_tracing_is_bounded(pmem: Path, tmp_path: Path, compiled: Compile) -> None:
    program = compiled(PROGRAMS / "lattester.c")
    command = [program, "store+clwb", "sequential", "64", "500000", str(pmem / "file")]
    run: Run = run_program(command, pmem=[pmem])
    begin = time.monotonic()
    run = run_program(command, pmem=[pmem])
    took = time.monotonic() - begin
    # Two and a half million accesses: a machine that takes none of them a second is broken, one that others share is
    # not.
    assert run.totals["accesses"] >= 1_000_000 and took < 30, f"{took:.1f} s of {os.cpu_count()} CPUs"
