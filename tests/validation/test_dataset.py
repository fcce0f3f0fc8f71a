"""Reading the sweep's layout: any subset of it, and clear words about what is wrong with it."""

from __future__ import annotations

import json

import pytest

from xpline import dataset
from xpline.errors import XplineError


def planned(write_dataset, tmp_path, file, **row):
    [only] = dataset.plan(dataset.read_tables(write_dataset(tmp_path, file, [row])))
    return only


@pytest.mark.parametrize(
    ("file", "row", "platform", "point"),
    [
        (
            "bandwidth",
            {"task_type": "RandBW", "interleaving": 1, "operation": "Store+Flush", "access_size": 64, "threads": 4},
            "optane",
            {"experiment": "random", "op": "store+clwb", "size": 64, "threads": 4},
        ),
        (
            "bandwidth",
            {"task_type": "StrideBW", "operation": "Load", "stride_size": 0},
            "optane-ni",
            {"experiment": "stride", "op": "load", "size": 256, "stride": 0, "threads": 1},
        ),
        (
            "bandwidth",
            {"media": "ldram", "interleaving": 1, "avgpower": 0, "operation": "Store"},
            "dram",
            {"experiment": "random", "op": "store", "size": 256, "threads": 1},
        ),
        (
            "flush",
            {"op": 1, "access_size": 4096, "clwb_size": 64, "fence_size": 1024},
            "optane-ni",
            {"experiment": "flush", "pattern": "random", "size": 4096, "clwb": 64, "fence": 1024, "threads": 1},
        ),
        (
            "alignment",
            {"alloc_type": 6, "operation": "Load", "threads": 6},
            "optane",
            {"experiment": "align", "op": "load", "size": 256, "binding": "ni-own-dimm", "threads": 6, "fenced": False},
        ),
        (
            "alignment",
            {"alloc_type": 0, "operation": "Load", "threads": 12, "version": "f1bdd37545518343"},
            "optane",
            {"experiment": "align", "op": "load", "size": 256, "binding": "shared-all", "threads": 12, "fenced": True},
        ),
        (
            "alignment",
            {"alloc_type": 2, "operation": "NTStore", "threads": 6, "version": "f1bdd37545518343"},
            "optane",
            {
                "experiment": "align",
                "op": "ntstore",
                "size": 256,
                "binding": "own-dimm",
                "threads": 6,
                "fence": 256,
                "fenced": False,
            },
        ),
        (
            "bandwidth",
            {"task_type": "StrideBW", "operation": "Load", "stride_size": 256, "version": "b9b739d0"},
            "optane-ni",
            {"experiment": "stride", "op": "load", "size": 256, "stride": 256, "fence": 256, "threads": 1},
        ),
    ],
)
def test_a_row_becomes_the_experiment_that_repeats_it(write_dataset, tmp_path, file, row, platform, point):
    row = planned(write_dataset, tmp_path, file, **row)
    assert (row.case.platform, json.loads(row.case.point), row.reason) == (platform, point, None)


@pytest.mark.parametrize(
    ("row", "overrides"),
    [
        ({"avgpower": 12500}, ("optane.power.budget=12.5W",)),
        ({"avgpower": 15000}, ("optane.power.budget=15W",)),
        ({"avgpower": 0, "media": "ldram"}, ()),
        ({"avgpower": 15000, "media": "ldram"}, ()),  # DRAM has no budget, whatever the row says
    ],
)
def test_the_power_budget_is_an_override(write_dataset, tmp_path, row, overrides):
    assert planned(write_dataset, tmp_path, "bandwidth", **row).case.overrides == overrides


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"media": "rpmem", "local": 0, "interleaving": 0}, "other socket"),
        ({"media": "tape"}, "media tape"),
        ({"operation": "Swap"}, "operation Swap is not known"),
        ({"task_type": "MixBW"}, "task MixBW"),
        ({"threads": ""}, "threads is empty"),
    ],
)
def test_what_is_not_covered_is_named(write_dataset, tmp_path, row, reason):
    row = planned(write_dataset, tmp_path, "bandwidth", **row)
    assert row.case is None
    assert reason in row.reason


@pytest.mark.parametrize(
    ("row", "platform"),
    [
        ({"media": "lpmem", "local": 1, "interleaving": 1}, "optane"),
        ({"media": "rdram", "local": 0, "interleaving": 1, "avgpower": 0}, "dram-remote"),
        ({"media": "rpmem", "local": 0, "interleaving": 1}, "optane-remote"),
        ({"media": "lpmem", "local": 0, "interleaving": 1}, "optane-remote"),
    ],
)
def test_memory_of_the_other_socket_is_a_platform(write_dataset, tmp_path, row, platform):
    case = planned(write_dataset, tmp_path, "bandwidth", **row).case
    assert case.platform == platform
    assert bool(case.overrides) == platform.startswith("optane")


@pytest.mark.parametrize(
    ("row", "platform"),
    [
        ({"date": "2018-11-30", "interleaving": 1}, "optane-2018"),
        ({"date": "11/3/2018", "interleaving": 1}, "optane-2018"),
        ({"date": "2018-12-01", "interleaving": 1}, "optane"),
        ({"date": "2019-11-30", "interleaving": 1}, "optane"),
        ({"date": "2018-11-30", "interleaving": 0}, "optane-ni"),
        ({"date": "2018-11-30", "interleaving": 1, "local": 0}, "optane-remote"),
    ],
)
def test_six_dimms_of_november_2018_are_a_platform(write_dataset, tmp_path, row, platform):
    assert planned(write_dataset, tmp_path, "bandwidth", **row).case.platform == platform


def test_repeats_share_a_case(write_dataset, tmp_path):
    rows = [{"date": "2019-04-01"}, {"date": "2019-04-02", "throughput": 7}, {"threads": 2}]
    plan = dataset.plan(dataset.read_tables(write_dataset(tmp_path, "bandwidth", rows)))
    assert plan[0].case == plan[1].case != plan[2].case


def test_a_table_without_the_line_of_types_loses_no_row(write_dataset, tmp_path):
    write_dataset(tmp_path, "flush", [{}, {}])
    path = tmp_path / "data" / "flush.csv"
    head, _, *rows = path.read_text().splitlines()
    path.write_text("\n".join([head, *rows]))
    assert dataset.read_tables(tmp_path)["flush"].height == 2


def test_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(XplineError, match=r"nowhere: does not exist; give the folder"):
        dataset.read_tables(tmp_path / "nowhere")


def test_a_folder_without_tables(tmp_path):
    with pytest.raises(XplineError, match=r"none of data/bandwidth\.csv, data/flush\.csv, data/alignment\.csv"):
        dataset.read_tables(tmp_path)


def test_a_column_that_is_missing(write_dataset, tmp_path):
    write_dataset(tmp_path, "flush", [{}], columns=["__key__", "throughput", "threads"])
    with pytest.raises(XplineError, match=r"flush\.csv: column task_type, .* is missing; found columns: __key__, thr"):
        dataset.read_tables(tmp_path)


def test_a_cell_that_is_no_number(write_dataset, tmp_path):
    write_dataset(tmp_path, "bandwidth", [{}, {"threads": "many"}])
    with pytest.raises(XplineError, match=r"bandwidth\.csv, line 4, column threads: 'many' is not a whole number"):
        dataset.read_tables(tmp_path)


def test_select(write_dataset, tmp_path):
    write_dataset(tmp_path, "bandwidth", [{"media": "ldram"}, {"media": "lpmem", "threads": 4}, {"media": "lpmem"}])
    tables = dataset.read_tables(write_dataset(tmp_path, "alignment", [{}]))

    def count(*conditions):
        return {name: table.height for name, table in dataset.select(tables, list(conditions)).items() if table.height}

    assert count() == {"bandwidth": 3, "alignment": 1}
    assert count("media=ldram|lpmem", "file=bandwidth") == {"bandwidth": 3}
    assert count("media=lpmem", "threads=1") == {"bandwidth": 1, "alignment": 1}
    assert count("alloc_type=0") == {"alignment": 1}
    for wrong, message in [("media", "write COLUMN=VALUE"), ("colour=red", "alloc_type"), ("media=tape", "no row")]:
        with pytest.raises(XplineError, match=message):
            count(wrong)


def test_a_graph_is_read_by_column(tmp_path):
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "g.csv").write_text("Threads,Read,Write\n1,2.5,3\n2,5,6\n")
    assert dataset.read_graph(tmp_path, "g.csv", ["Threads", "Write"]).rows() == [(1.0, 3.0), (2.0, 6.0)]
    assert dataset.read_graph(tmp_path, "other.csv", ["Threads"]) is None
    assert dataset.read_graph(None, "g.csv", ["Threads"]) is None
    with pytest.raises(XplineError, match=r"g\.csv: column Speed is missing; found columns: Threads, Read, Write"):
        dataset.read_graph(tmp_path, "g.csv", ["Speed"])


def test_the_real_sweep_is_planned_whole(shared):
    plan = dataset.plan(dataset.read_tables(shared("data/optane-study")))
    assert [row.reason for row in plan if row.reason] == []
    assert len({row.case for row in plan}) < len(plan)
    assert {row.case.platform for row in plan} == {"optane", "optane-2018", "optane-ni", "dram", "dram-remote"}
