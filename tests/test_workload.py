"""Workload files: every kind runs, what is wrong is said with its place."""

import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xpline import XplineError, bench, workload
from xpline.workload.operations import Operation, parse

EVERY_KIND = """\
# One of each kind.
bandwidth:
  matrix:
    operation: [read, write]
    persist_instruction: [cache, cacheinv, nocache, none]
    number_threads: [1, 4]
  args:
    exec_mode: random
    access_size: 256
    number_partitions: 0
    prefault_file: true
    dram_huge_pages: false
scan: {args: {operation: read, exec_mode: sequential, access_size: 4K, number_threads: 4, min_io_chunk_size: 1M}}
hot:
  args: {exec_mode: random, random_distribution: zipf, zipf_alpha: 0.99, number_threads: 2, run_time: 1}
mixed:
  args: {exec_mode: random, access_size: 64, dram_memory_range: 1G, dram_operation_ratio: 0.8, number_threads: 4}
tree_update:
  args:
    exec_mode: custom
    custom_operations: "rp_512,rp_512,wp_64_cache_320,wp_64_cache_-64"
    latency_sample_frequency: 10
    number_operations: 100000
    numa_pattern: near
hybrid:
  matrix: {custom_operations: ["rd_1024,r_512,w_64_nocache", "r_64,r_64,r_64"]}
  args: {exec_mode: custom, dram_memory_range: 1G, number_threads: 4, latency_sample_frequency: 10}
side_by_side:
  parallel_benchmark:
    lookups:
      args: {exec_mode: custom, custom_operations: "r_64,r_64", number_threads: 2, latency_sample_frequency: 10}
    log:
      matrix: {number_threads: [1, 2]}
      args: {operation: write, access_size: 4096, memory_range: 2G}
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Write a workload file into an empty folder; its name."""
    monkeypatch.chdir(tmp_path)

    def write(text):
        (tmp_path / "w.yaml").write_text(text)
        return "w.yaml"

    return write


@pytest.mark.parametrize("platform", ["optane", "dram", "optane-remote"])
def test_every_kind_runs(file, platform):
    cases = workload.read(file(EVERY_KIND))
    assert len(cases) == 16 + 4 + 2 + 2
    table = workload.run(platform, cases, max_requests=40_000)
    assert table.height == len(cases) + 2 * 2
    assert (table["bandwidth_mib_s"] > 0).all() and (table["operations_s"] > 0).all()
    whole = table.filter(pl.col("workload") == "side_by_side", pl.col("part").is_null())
    parts = table.filter(pl.col("part").is_not_null())
    assert parts["part"].to_list() == ["lookups", "log"] * 2
    assert parts["operations_s"].sum() == pytest.approx(whole["operations_s"].sum())
    assert parts["ewr"].null_count() == 4
    assert parts.filter(part="lookups")["latency_p99_ns"].null_count() == 0
    assert parts.filter(part="log")["latency_p99_ns"].null_count() == 2


def test_a_run_time_bounds_a_run_in_simulated_seconds(xpline, file):
    text = "b: {matrix: {run_time: [0.00002, 0.0002]}, args: {operation: write, exec_mode: random, access_size: 64}}"
    table = workload.run("optane-ni", workload.read(file(text)))
    assert table["time_ns"].to_list() == pytest.approx([15_000, 150_000], rel=1e-3)  # without the warm-up
    _, _, err = xpline("bench", "--workload", "w.yaml", "--on", "optane-ni")
    assert err == ""
    _, _, err = xpline("bench", "--workload", file(text.replace("0.0002]", "1]")), "--on", "optane-ni")
    assert err.startswith("run_time: 1 of 2 runs that have one ended before it")


def test_keys_without_effect_are_named(xpline, file):
    text = "b: {args: {prefault_file: false}}\nc: {args: {prefault_file: false}}\nd: {args: {dram_huge_pages: true}}"
    _, _, err = xpline("bench", "--workload", file(text), "--on", "dram", "--max-requests", "4000")
    assert err.startswith("b, c: prefault_file: false has no effect: ") and "dram_huge_pages" not in err


def test_memory_mode_keeps_nothing_that_a_workload_writes(xpline, file):
    text = "b: {matrix: {persist_instruction: [%s]}, args: {operation: write}}"
    for persist, warned in (("cache", True), ("nocache", True), ("none", False)):
        name = file(text % persist)
        _, _, err = xpline("bench", "--workload", name, "--on", "memory-mode", "--max-requests", "4000")
        assert ("memory-mode is volatile" in err) == warned, persist


def test_the_default_of_a_key_is_perma_bench_s(file):
    job = workload.read(file("b: {args: {access_size: 64}}"))[0].jobs["b"]
    assert (job.memory_range, job.number_operations, job.exec_mode) == (10 << 30, 10_000_000, "sequential")


def test_a_persisted_write_costs_what_the_experiment_of_the_same_name_says(file):
    text = "b: {args: {operation: write, access_size: 64, exec_mode: random, persist_instruction: none}}"
    stores = workload.run("dram", workload.read(file(text)))["bandwidth_mib_s"].item()
    assert stores == pytest.approx(bench.random("dram", op="store", size=64)["bandwidth_mib_s"].item(), rel=0.1)


def test_far_threads_run_on_the_other_socket(file):
    text = "b: {matrix: {numa_pattern: [near, far]}, args: {exec_mode: custom, custom_operations: r_64}}"
    cases = workload.read(file(text))
    near, far, same, remote = workload.run(["optane", "optane-remote"], cases).to_dicts()
    assert (near["overrides"], far["overrides"], remote["overrides"]) == (None, "nodes.cpu=1", None)
    assert far["operations_s"] < 0.95 * near["operations_s"]
    assert far["operations_s"] == same["operations_s"] == remote["operations_s"]


def test_dram_beside_is_faster_than_persistent_memory(file):
    text = "b: {matrix: {custom_operations: [rd_64, rp_64]}, args: {exec_mode: custom, dram_memory_range: 1G}}"
    dram, optane = workload.run("optane", workload.read(file(text)))["operations_s"]
    assert dram > 2 * optane


def test_json_has_every_key_and_every_result(xpline, file):
    name = file(EVERY_KIND)
    code, out, err = xpline("bench", "--workload", name, "--only", "side_by_side", "--on", "optane", "--json")
    assert (code, err) == (0, "")
    one, two = json.loads(out)
    assert (one["workload"], one["type"], one["platform"]) == ("side_by_side", "parallel", "optane")
    assert (one["matrix"], two["matrix"]) == ({"log.number_threads": "1"}, {"log.number_threads": "2"})
    assert one["config"]["lookups"]["custom_operations"] == "r_64,r_64"
    parts = one["results"]["parts"]
    assert parts["lookups"]["latency_ns"]["percentile_99"] >= parts["lookups"]["latency_ns"]["median"] > 0
    assert "latency_ns" not in parts["log"]
    log = parts["log"]
    assert log["bandwidth_gib_s"] == pytest.approx(log["operations_s"] * 4096 / (1 << 30))


def test_the_table_on_the_terminal_and_in_a_file_are_the_same_run(xpline, file, tmp_path):
    name = file(EVERY_KIND)
    code, out, _ = xpline("bench", "--workload", name, "--only", "hot", "--on", "optane,dram", "--out", "t.csv")
    assert code == 0
    assert [line.split()[:2] for line in out.splitlines()[1:]] == [["optane", "hot"], ["dram", "hot"]]
    assert pl.read_csv(tmp_path / "t.csv")["operations_s"].null_count() == 0


def test_the_same_file_gives_the_same_rows_whatever_the_jobs(file):
    cases = workload.read(file(EVERY_KIND))
    one, two = (workload.run("optane", cases, max_requests=20_000, jobs=jobs) for jobs in (1, 2))
    assert one.equals(two)


MALFORMED = {
    "reads: [1, 2": "w.yaml:1: not valid YAML",
    "a:\n  args:\n\tx: 1": "w.yaml:3: not valid YAML",
    "": "w.yaml:1: empty",
    "- a\n- b": "w.yaml:1: is a list; expected keys with values",
    "a: 5": "w.yaml:1: a = 5: is a single value; expected keys",
    "a:\n  arg: {access_size: 64}": "w.yaml:2: a.arg: unknown key; a benchmark has matrix, args",
    "a:\n  args:\n    acces_size: 64": "w.yaml:3: a.args.acces_size = 64: unknown key; did you mean access_size?",
    "a:\n  args:\n    access_size: 100": "w.yaml:3: a.args.access_size = 100: must be a multiple of 64 B",
    "a:\n  args:\n    memory_range: 10X": "w.yaml:3: a.args.memory_range = 10X: expected bytes, with K, M or G",
    "a:\n  args: {number_threads: 0}": "w.yaml:2: a.args.number_threads = 0: must be a whole number from 1",
    "a:\n  args: {number_threads: [1, 2]}": "w.yaml:2: a.args.number_threads: is a list; expected a single value",
    "a:\n  matrix: {number_threads: 4}": "w.yaml:2: a.matrix.number_threads = 4: is a single value; expected a list",
    "a:\n  matrix: {number_threads: []}": "w.yaml:2: a.matrix.number_threads: is an empty list",
    "a:\n  args: {operation: append}": "w.yaml:2: a.args.operation = append: must be read or write",
    "a:\n  args: {exec_mode: custom}": "w.yaml:2: a.args.exec_mode = custom: needs custom_operations",
    "a:\n  args: {custom_operations: r_64}": "w.yaml:2: a.args.custom_operations = r_64: needs exec_mode: custom",
    "a:\n  args:\n    exec_mode: custom\n    custom_operations: r_64,x_64": "w.yaml:4: a.args.custom_operations = "
    "r_64,x_64: x_64 is no operation",
    "a:\n  args:\n    exec_mode: custom\n    custom_operations: r_64,w_64": "w.yaml:4: a.args.custom_operations = "
    "r_64,w_64: w_64 is no operation",
    "a:\n  args:\n    exec_mode: custom\n    custom_operations: r_64,w_64_sync": "w.yaml:4: a.args.custom_operations = "
    "r_64,w_64_sync: w_64_sync: sync is no persist instruction",
    "a:\n  args:\n    exec_mode: custom\n    custom_operations: r_64,wd_64_none": "w.yaml:4: "
    "a.args.custom_operations = r_64,wd_64_none: wd_64_none writes to volatile memory",
    "a:\n  args:\n    exec_mode: custom\n    custom_operations: rd_64": "w.yaml:4: a.args.custom_operations = rd_64: "
    "64 B do not fit: dram_memory_range is 0 B",
    "a:\n  args: {number_threads: 4, number_partitions: 3}": "w.yaml:2: a.args.number_partitions = 3: must divide",
    "a:\n  args: {dram_operation_ratio: 1.5}": "w.yaml:2: a.args.dram_operation_ratio = 1.5: must be a number from 0",
    "a:\n  args: {dram_operation_ratio: 0.5}": "w.yaml:2: a.args.dram_operation_ratio = 0.5: needs exec_mode: random",
    "a:\n  args: {random_distribution: zipf}": "w.yaml:2: a.args.random_distribution = zipf: needs exec_mode",
    "a:\n  args: {prefault_file: maybe}": "w.yaml:2: a.args.prefault_file = maybe: must be true or false",
    "a:\n  args: {access_size: 64, access_size: 128}": "w.yaml:2: a.args.access_size = 128: is given twice",
    "a:\n  matrix: {access_size: [64]}\n  args: {access_size: 64}": "w.yaml:3: a.args.access_size = 64: is in matrix",
    "a:\n  parallel_benchmark:\n    x: {args: {}}": "w.yaml:3: a.parallel_benchmark: has 1 parts; expected two",
    "a:\n  args: {}\n  parallel_benchmark: {}": "w.yaml:2: a.args: unknown key; with parallel_benchmark",
    "a:\n  parallel_benchmark:\n    x: {args: {numa_pattern: far}}\n    y: {args: {}}": "w.yaml:2: a: numa_pattern is",
    "a:\n  args: {run_time: 0}": "w.yaml:2: a.args.run_time = 0: must be a number of seconds, from 0.000001",
    "a:\n  matrix: {number_operations: [1e9]}": "w.yaml:2: a.matrix.number_operations = 1e9: must be a whole number",
}


@pytest.mark.parametrize("text", MALFORMED, ids=range(len(MALFORMED)))
def test_what_is_wrong_is_said_with_file_line_and_key(xpline, file, text):
    code, out, err = xpline("bench", "--workload", file(text), "--on", "optane")
    assert (code, out) == (2, "")
    assert err.startswith(f"xpline: {MALFORMED[text]}"), err


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a:\n  matrix: {number_threads: [4, 99]}", "w.yaml:2: a: number_threads=99 on optane: threads = 99: must be"),
        ("a:\n  args: {memory_range: 200G}", "w.yaml:2: a: on optane: range = 214748364800: all groups together"),
    ],
)
def test_what_the_platform_cannot_run_names_the_benchmark(file, text, problem):
    with pytest.raises(XplineError) as refused:
        workload.run("optane", workload.read(file(text)))
    assert str(refused.value).startswith(problem)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--workload", "none.yaml"), "none.yaml: cannot be read: No such file"),
        (("--workload", "w.yaml", "--only", "b"), "--only b: w.yaml has no such benchmark; it has a"),
        (("--workload", "w.yaml", "--explain"), "--explain: is for single experiments"),
        (("--on", "dram"), "--on: name an experiment, or a file with --workload"),
        (("--on", "dram", "random"), "--on before random: write it after"),
    ],
)
def test_options_that_do_not_go_together_are_refused(xpline, file, arguments, problem):
    file("a: {args: {}}")
    code, _, err = xpline("bench", *arguments)
    assert code == 2
    assert err.startswith(f"xpline: {problem}")


operations = st.lists(
    st.tuples(
        st.sampled_from("rw"),
        st.integers(1, 64).map(lambda lines: 64 * lines),
        st.sampled_from(["cache", "cacheinv", "nocache", "none"]),
        st.integers(-64, 64).map(lambda lines: 64 * lines),
    )
)


@given(st.sampled_from(["", "d", "p"]), operations)
def test_chains_are_read_as_they_are_written(memory, chain):
    words = [f"r{memory}_64"]
    for kind, size, persist, offset in chain:
        words.append(f"r{memory}_{size}" if kind == "r" else f"w{memory}_{size}_{persist}_{offset}")
    read = parse(",".join(words))
    assert [operation.size for operation in read[1:]] == [size for _, size, _, _ in chain]
    assert {operation.memory for operation in read} == {"volatile" if memory == "d" else "persistent"}
    assert [operation.offset for operation in read[1:]] == [0 if kind == "r" else at for kind, _, _, at in chain]


@given(st.text(alphabet="rwdp_0123456789,cahenov- ", max_size=40))
def test_any_text_is_a_chain_or_a_message(text):
    try:
        assert all(isinstance(operation, Operation) for operation in parse(text))
    except ValueError as error:
        assert str(error)
