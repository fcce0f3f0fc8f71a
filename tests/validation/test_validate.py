"""Validation: predictions for every row, whatever happens on the way."""

from __future__ import annotations

import csv

import pytest

from xpline.cases import SWEEP, Platforms, case
from xpline.errors import XplineError
from xpline.platform import Platform
from xpline.validate import validate

ROWS = [
    {"threads": 4},
    {"threads": 1, "operation": "Load"},
    {"media": "rpmem", "local": 0, "interleaving": 0},
    {"threads": 4, "date": "2019-04-02"},
    {"threads": 2, "avgpower": 12500},
    {"threads": 2, "media": "ldram", "avgpower": 0},
]


@pytest.fixture
def directory(write_dataset, tmp_path):
    write_dataset(tmp_path, "bandwidth", ROWS)
    return write_dataset(tmp_path, "flush", [{"threads": 2}])


def read(path):
    with path.open() as file:
        return list(csv.reader(file))


def test_predictions_are_in_the_order_of_the_data_set(model, directory, tmp_path):
    outcome = validate(directory, tmp_path / "p.csv")
    assert read(tmp_path / "p.csv") == [
        ["__key__", "file", "throughput", "ewr"],
        ["bandwidth-0", "bandwidth", "400.3333", "0.5000"],
        ["bandwidth-1", "bandwidth", "100.3333", ""],
        ["bandwidth-2", "bandwidth", "", ""],
        ["bandwidth-3", "bandwidth", "400.3333", "0.5000"],
        ["bandwidth-4", "bandwidth", "200.3333", "0.5000"],
        ["bandwidth-5", "bandwidth", "200.3333", "0.5000"],
        ["flush-0", "flush", "200.3333", "0.5000"],
    ]
    assert outcome.not_covered == {"media rpmem, not interleaved, of the other socket is not a platform yet": 1}
    assert outcome.simulated == len(model.ran) == 5  # the repeat is not run again


def test_an_interrupted_run_goes_on_where_it_stopped(model, directory, tmp_path):
    model.stop_after = 2
    with pytest.raises(KeyboardInterrupt):
        validate(directory, tmp_path / "p.csv")
    assert not (tmp_path / "p.csv").exists()
    with (tmp_path / "p.csv.cache").open("a") as file:
        file.write('{"case": "cut sh')  # as a crash would leave it
    model.stop_after = None
    outcome = validate(directory, tmp_path / "p.csv")
    assert (outcome.resumed, outcome.simulated, len(model.ran)) == (2, 3, 5)
    resumed = (tmp_path / "p.csv").read_bytes()
    validate(directory, tmp_path / "fresh.csv")
    assert resumed == (tmp_path / "fresh.csv").read_bytes()
    assert validate(directory, tmp_path / "p.csv").simulated == 0


def test_a_changed_platform_is_run_again(model, directory, tmp_path):
    validate(directory, tmp_path / "p.csv")
    changed = Platforms({"optane.xpbuffer.lines": 128})
    outcome = validate(directory, tmp_path / "p.csv", platforms=changed)
    assert (outcome.simulated, outcome.resumed) == (4, 1)  # DRAM has no XPBuffer: its point stands
    assert validate(directory, tmp_path / "p.csv").simulated == 0


def test_another_build_of_the_model_is_run_again(model, directory, tmp_path, monkeypatch):
    validate(directory, tmp_path / "p.csv")
    monkeypatch.setattr("xpline.validate.cache.model_version", lambda: "another")
    assert validate(directory, tmp_path / "p.csv").simulated == 5


def test_the_power_budget_of_a_row_yields_to_the_user(model, directory):
    seen = []

    def row(platform, point):
        seen.append(platform["optane.power.budget"].value)
        return {"bandwidth_mib_s": 1.0, "ewr": None, "imc_written_bytes": 0}

    model.row = row
    validate(directory, only=["avgpower=12500"])
    validate(directory, only=["avgpower=12500"], platforms=Platforms({"optane.power.budget": "18W"}))
    assert [value.strip('"') for value in seen] == ["12.5W", "18W"]


def test_a_sample_is_always_the_same_and_is_scored_alone(model, directory, tmp_path):
    outcome = validate(directory, tmp_path / "p.csv", sample=2)
    assert outcome.simulated == 2
    assert outcome.score.total()["n"] == 2
    assert outcome.predictions.equals(validate(directory, sample=2).predictions)


def test_only_some_rows(model, directory):
    outcome = validate(directory, only=["file=bandwidth", "media=ldram|rpmem"])
    assert outcome.predictions["__key__"].to_list() == ["bandwidth-2", "bandwidth-5"]
    assert outcome.score.total()["n"] == 2


def test_nothing_runs_when_predictions_cannot_be_written(model, directory, tmp_path):
    for path, problem in [(tmp_path, "is a folder"), (tmp_path / "no" / "p.csv", "does not exist")]:
        with pytest.raises(XplineError, match=problem):
            validate(directory, path)
    assert model.ran == []


def test_an_override_that_no_platform_has(model, directory):
    with pytest.raises(XplineError, match="colour"):
        Platforms({"optane.colour": "red"})
    with pytest.raises(XplineError, match="NAME is one of optane, optane-ni, dram"):
        Platforms(files={"tape": "tape.toml"})


def test_a_file_in_place_of_a_platform_holds_for_its_variants(tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text('name = "mine"\ndescription = "M"\nextends = "optane"\noptane.media.read_busy = "99ns"\n')
    platforms = Platforms(files={"optane": str(mine)})
    busy = {name: platforms.parameter(name, "optane.media.read_busy") for name in SWEEP if name.startswith("optane")}
    own = Platform("optane-2018")["optane.media.read_busy"].value.strip('"')
    assert busy == {"optane": "99ns", "optane-ni": "99ns", "optane-remote": "99ns", "optane-2018": own}
    keys = ("interleave.dimms", "nodes.memory", "optane.media.bank_period")
    assert [
        platforms.parameter(name, key)
        for name, key in zip(("optane-ni", "optane-remote", "optane-2018"), keys, strict=True)
    ] == ["1", "1", "32KiB"]
    both = Platforms({"optane.media.read_busy": "77ns"}, {"optane": str(mine), "optane-ni": "optane-ni"})
    assert both.parameter("optane-2018", "optane.media.read_busy") == "77ns"
    assert both.of(case("optane-ni", {})).name == "optane-ni"


def test_a_row_that_the_model_cannot_run_is_named_and_left_empty(model, write_dataset, tmp_path):
    directory = write_dataset(tmp_path, "bandwidth", [{"access_size": 100}, {"threads": 99}, {"threads": 2}])
    outcome = validate(directory)
    assert outcome.predictions["throughput"].to_list() == [None, None, pytest.approx(200.3333, abs=1e-3)]
    assert sorted(outcome.not_covered) == [
        "size = 100: must be a multiple of 64 bytes (a cache line), such as 64 or 128",
        "threads = 99: must be 1 to 24, a core each (optane-ni has 24)",
    ]


def test_a_dimm_that_is_issued_nothing_reads_an_ewr_of_zero(model, write_dataset, tmp_path):
    directory = write_dataset(tmp_path, "bandwidth", [{"operation": "Store", "ewr": 0.003}])
    model.row = lambda platform, point: {"bandwidth_mib_s": 1000.0, "ewr": None, "imc_written_bytes": 0}
    outcome = validate(directory)
    assert outcome.predictions["ewr"].to_list() == [0.0]
    assert outcome.score.total()["ewr_median"] == pytest.approx(0.003)
