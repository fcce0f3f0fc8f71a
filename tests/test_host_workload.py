"""Workload files on the memory of this machine."""

import pytest

from xpline import XplineError, workload
from xpline.host import Host

BRIEF = {"span": "16MiB", "window": 0.002, "time_limit": 0.1}

FILE = """
chain:
  args:
    exec_mode: custom
    custom_operations: "rp_512,rd_64,rp_256,wp_64_cache_-64"
    memory_range: 64M
    dram_memory_range: 16M
    latency_sample_frequency: 100
skewed:
  matrix:
    random_distribution: [uniform, zipf]
  args:
    exec_mode: random
    zipf_alpha: 1.5
    access_size: 64
    memory_range: 256M
both:
  parallel_benchmark:
    reads:
      args: {memory_range: 64M, access_size: 4096}
    log:
      args: {memory_range: 32M, operation: write, access_size: 256}
"""


@pytest.fixture
def cases(tmp_path):
    def read(text):
        path = tmp_path / "w.yaml"
        path.write_text(text)
        return workload.read(path)

    return read


def test_a_workload_runs_on_the_host_as_on_a_model(cases):
    host = Host("host", **BRIEF)
    some = [case for case in cases(FILE) if not case.is_parallel or host.cpus > 1]
    rows = workload.run([host, "dram"], some, max_requests=None)
    measured, modelled = (rows.filter(source=source) for source in ("host", "model"))
    columns = ["workload", "case", "part", "op", "pattern", "size", "threads"]
    assert measured.select(columns).equals(modelled.select(columns))
    assert (measured["operations_s"] > 0).all() and (measured["bandwidth_mib_s"] > 0).all()
    chain, uniform, zipf, *_ = measured.iter_rows(named=True)
    assert chain["latency_p50_ns"] <= chain["latency_p99_ns"] <= chain["latency_max_ns"]
    assert chain["flush_by"] == "clwb" and uniform["latency_mean_ns"] is None
    # Bandwidth is what the operations move: 512 + 64 + 256 + 64 B each.
    assert chain["bandwidth_mib_s"] * (1 << 20) / chain["operations_s"] == pytest.approx(896, rel=0.01)
    assert zipf["operations_s"] > 1.2 * uniform["operations_s"]  # the hottest places are in the caches


def test_the_parts_of_a_pair_add_up(cases):
    host = Host("host", **BRIEF)
    if host.cpus < 2:
        pytest.skip("two threads need two CPUs")
    both, reads, log = workload.run(host, cases(FILE)[-1:]).iter_rows(named=True)
    assert (reads["part"], log["part"]) == ("reads", "log")
    assert reads["bytes"] + log["bytes"] == both["bytes"]
    assert reads["operations_s"] + log["operations_s"] == pytest.approx(both["operations_s"])


def test_as_many_operations_as_asked_for_are_enough(cases):
    host = Host("host", **(BRIEF | {"time_limit": 20.0, "precision": 1e-6}))
    (row,) = workload.run(host, cases("few: {args: {memory_range: 16M, number_operations: 1000}}")).iter_rows(
        named=True
    )
    assert not row["settled"] and row["repeats"] == 1


@pytest.mark.parametrize(
    ("target", "args", "message"),
    [
        ("host", "memory_range: 1024G", "of memory needed|all groups together have"),
        ("host", "numa_pattern: far", "choose the CPUs of another node with --cpu-node"),
        ("host", "latency_sample_frequency: 10000000", "every 1048576th operation at least must be timed"),
        ("host", "number_threads: 9999", "a core each"),
        ("host:file=m", "{dram_memory_range: 1M, memory_range: 1M}", "volatile memory beside a file or a device"),
        ("host:block=m", "memory_range: 1M", "needs memory that is mapped"),
    ],
)
def test_what_the_host_cannot_run_is_said(cases, tmp_path, monkeypatch, target, args, message):
    monkeypatch.chdir(tmp_path)
    args = args if args.startswith("{") else f"{{{args}}}"
    with pytest.raises(XplineError, match=message):
        workload.run(Host(target, **BRIEF), cases(f"bad: {{args: {args}}}"))
    assert [path.name for path in tmp_path.iterdir()] == ["w.yaml"]
