"""The package's scoring rule equals the reference script's, whatever the data and the predictions."""

from __future__ import annotations

import csv
import importlib.util
import math
import random

import polars as pl
import pytest

from xpline.dataset import read_tables
from xpline.score import read_predictions, score


@pytest.fixture(scope="module")
def script(shared):
    spec = importlib.util.spec_from_file_location("score_script", shared("tools/score.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def predict(tables, path, seed, missing=0.1):
    """Predictions scattered around the measured values, some of them absent, some without EWR."""
    rng = random.Random(seed)
    with path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["__key__", "file", "throughput", "ewr"])
        for file, table in tables.items():
            for row in table.iter_rows(named=True):
                known = row["throughput"] and rng.random() > missing
                throughput = float(row["throughput"]) * rng.lognormvariate(0, 0.4) if known else ""
                writer.writerow([row["__key__"], file, throughput, rng.random() if rng.random() > 0.2 else ""])
    return path


def assert_equal_to_script(script, directory, predictions):
    tables = read_tables(directory)
    ours = score(tables, read_predictions(predictions))
    theirs, dropped = script.points(directory, script.read_predictions(predictions))
    assert ours.dropped == dropped
    assert ours.points.height == len(theirs)
    for mine, p in zip(ours.points.iter_rows(named=True), theirs, strict=True):
        assert all(mine[c] == (int(v) if c == "threads" else v or None) for c, v in p.items() if c in script_keys(p))
        for column in ("measured", "predicted", "error", "ewr_measured", "ewr_error"):
            assert mine[column] == pytest.approx(p.get(column)) or mine[column] is p.get(column) is None
    total = ours.total()
    errors = [p["error"] for p in theirs]
    ewr = [p["ewr_error"] for p in theirs if "ewr_error" in p]
    for column, values, q in [("median", errors, 0.5), ("p90", errors, 0.9), ("ewr_p90", ewr, 0.9)]:
        want = script.quantile(values, q)
        assert total[column] == pytest.approx(want) or (total[column] is None and math.isnan(want))
    assert (total["n"], total["ewr_n"]) == (len(errors), len(ewr))


def script_keys(point):
    return set(point) - {"measured", "predicted", "n", "error", "ewr_measured", "ewr_error"}


@pytest.mark.parametrize("seed", range(5))
def test_equals_script_on_made_up_rows(script, write_dataset, tmp_path, seed):
    rng = random.Random(seed)

    def rows(n):
        return [
            {
                "media": rng.choice(["lpmem", "lpmem", "ldram", "rdram"]),
                "interleaving": rng.choice([0, 1]),
                "operation": rng.choice(["Load", "NTStore", "Store+Flush"]),
                "access_size": rng.choice([64, 256]),
                "threads": rng.choice([1, 24]),
                "date": rng.choice(["2019-04-04", "2019-04-18", "2019-04-19"]),
                "machine": rng.choice(["AEP1", "AEP2"]),
                "throughput": rng.choice(["", 0, rng.uniform(900, 1300), rng.uniform(10, 100)]),
                "ewr": rng.choice(["", rng.uniform(0, 2)]),
            }
            for _ in range(n)
        ]

    for file, n in [("bandwidth", 200), ("flush", 50), ("alignment", 50)]:
        write_dataset(tmp_path, file, rows(n))
    assert_equal_to_script(script, tmp_path, predict(read_tables(tmp_path), tmp_path / "p.csv", seed))


def test_equals_script_on_the_real_sweep(script, shared, tmp_path):
    directory = shared("data/optane-study")
    assert_equal_to_script(script, directory, predict(read_tables(directory), tmp_path / "p.csv", 7))


@pytest.fixture
def one_point(write_dataset, tmp_path):
    """Score one row of bandwidth.csv against one prediction, of EWR 0.5."""

    def scored(predicted, **row):
        tables = read_tables(write_dataset(tmp_path, "bandwidth", [row]))
        predictions = pl.DataFrame(
            {"__key__": ["bandwidth-0"], "throughput": [predicted], "ewr": [0.5]},
            schema={"__key__": pl.String, "throughput": pl.Float64, "ewr": pl.Float64},
        )
        return score(tables, predictions).points.row(0, named=True)

    return scored


def test_the_resolution_of_the_instrument_is_no_error(one_point):
    assert one_point(1012.8, throughput=1000, threads=2)["error"] == pytest.approx(0)
    assert one_point(1022.8, throughput=1000, threads=2)["error"] == pytest.approx(0.01)


def test_a_point_without_a_prediction_is_wholly_wrong(one_point):
    assert one_point(None, throughput=1000)["error"] == 1.0


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ({"ewr": 0.9}, 0.4),
        ({"ewr": 1.6}, None),  # rewritten inside the buffer
        ({"ewr": ""}, None),
        ({"ewr": 0.9, "operation": "Load"}, None),
        ({"ewr": 0.9, "media": "ldram"}, None),
    ],
)
def test_which_points_have_their_ewr_scored(one_point, row, error):
    assert one_point(1000.0, **row)["ewr_error"] == (error and pytest.approx(error))


def test_errors_by_slice(write_dataset, tmp_path):
    tables = read_tables(
        write_dataset(tmp_path, "bandwidth", [{"operation": "Load"}, {"operation": "Store", "ewr": 0.25}])
    )
    predictions = pl.DataFrame({"__key__": ["bandwidth-0"], "throughput": [506.4], "ewr": [None]})
    slices = score(tables, predictions.cast({"ewr": pl.Float64})).by(["operation"])
    assert slices.select("operation", "n", "median", "ewr_n", "ewr_median").rows() == [
        ("Load", 1, pytest.approx(0.4872), 0, None),
        ("Store", 1, 1.0, 1, 1.0),
    ]
