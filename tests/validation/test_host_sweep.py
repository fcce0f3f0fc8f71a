"""A sweep of a host in place of the published one: how its rows are read, and a fit to them."""

import pytest

from xpline import Platform, XplineError, bench, dataset, table
from xpline.fit import fit
from xpline.fit.targets import targets


def host_rows(rows):
    """A table as a host gives it."""
    usual = {"platform": "host", "source": "host", "threads": 1, "mapping": "anonymous", "settled": True}
    return table.from_rows(usual | row for row in rows)


def test_rows_of_a_host_become_rows_of_the_sweep(tmp_path):
    path = tmp_path / "sweep.parquet"
    rows = [
        {"experiment": "random", "op": "load", "size": 64, "bandwidth_mib_s": 100.0},
        {
            "experiment": "stride",
            "op": "store+clwb",
            "size": 256,
            "stride": 512,
            "bandwidth_mib_s": 200.0,
            "threads": 2,
        },
        {"experiment": "flush", "pattern": "random", "size": 256, "clwb": 64, "fence": 256, "bandwidth_mib_s": 300.0},
        {"experiment": "latency", "op": "load", "pattern": "random", "latency_mean_ns": 90.0},
        {"experiment": "stride", "op": "load", "size": 256, "stride": 256, "fence": 64, "bandwidth_mib_s": 50.0},
    ]
    table.write(host_rows(rows), path)
    tables = dataset.read_tables(path)
    assert {name: frame.height for name, frame in tables.items()} == {"bandwidth": 2, "flush": 1}
    planned = [(row.case.platform, row.case.point) for row in dataset.plan(tables)]
    assert {platform for platform, _ in planned} == {"dram"}
    assert all(part in planned[1][1] for part in ('"experiment": "stride"', '"stride": 512', '"threads": 2'))
    assert [float(value) for value in tables["bandwidth"]["throughput"]] == [100.0, 200.0]


def test_the_files_of_a_folder_are_one_sweep_and_repeats_count_with_their_median(tmp_path):
    for round_, bandwidth in enumerate((100.0, 118.0, 104.0)):
        rows = [
            {"experiment": "random", "op": "load", "size": size, "bandwidth_mib_s": bandwidth} for size in (64, 128)
        ]
        table.write(host_rows(rows), tmp_path / f"{round_}.parquet")
    tables = dataset.read_tables(tmp_path)
    assert tables["bandwidth"].height == 6
    found, _ = targets(tables, {})
    assert [target.measured for target in found] == [104.0, 104.0]


def test_a_file_without_rows_of_a_host_is_refused(tmp_path):
    path = tmp_path / "model.csv"
    table.write(bench.latency("dram", max_requests=20_000), path)
    with pytest.raises(XplineError, match="no row of random, stride or flush that was measured on a host"):
        dataset.read_tables(path)


def test_a_fit_finds_the_platform_that_a_sweep_came_from(tmp_path):
    """The model stands for a machine whose requests take longer through the fabric."""
    path = tmp_path / "sweep.parquet"
    slow = Platform("dram", set={"mesh.request": "90ns"})
    made = bench.random(slow, op="load", size=[64, 256, 1024, 4096], threads=[1, 4, 16], max_requests=60_000)
    columns = ["experiment", "op", "size", "threads", "bandwidth_mib_s"]
    table.write(host_rows(made.select(columns).to_dicts()), path)
    outcome = fit(path, ["dram"], tmp_path / "mine.toml", only=["mesh.request"], folds=2, sample=12, budget=12)
    assert outcome.after.median < 0.05 < outcome.before.median
    assert outcome.left_out.median < 0.15
    (fitted,) = outcome.parameters
    assert 60 < float(fitted.after.removesuffix("ns")) < 120
    assert Platform(tmp_path / "mine.toml")["mesh.request"].value.strip('"') == fitted.after
