"""Fits: hidden values are found again, left-out rows are honest, and nothing depends on how a fit was run."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from xpline import Platform, bench
from xpline.cli import main
from xpline.errors import XplineError
from xpline.fit import fit
from xpline.fit.simulate import MAX_REQUESTS

INTERVAL = "optane.media.read_interval"
LATENCY = "optane.xpbuffer.hit_latency"

#: Rows of one DIMM: enough to tell how fast its media read, and how long a buffered line takes.
LOADS = [
    {"operation": "Load", "access_size": size, "threads": threads}
    for size in (64, 256, 1024, 4096)
    for threads in (1, 2, 4, 8)
]


def parameters(path, *entries):
    """A file of parameters: keys with their bounds."""
    texts = (f'[[parameter]]\nkey = "{key}"\nlow = "{low}"\nhigh = "{high}"\n' for key, low, high in entries)
    path.write_text("\n".join(texts))
    return path


@pytest.fixture
def both(tmp_path):
    return parameters(tmp_path / "both.toml", (INTERVAL, "20ns", "80ns"), (LATENCY, "30ns", "150ns"))


@pytest.fixture
def directory(write_dataset, tmp_path):
    return write_dataset(
        tmp_path / "set", "bandwidth", [row | {"throughput": 1000.0 + i} for i, row in enumerate(LOADS)]
    )


@pytest.fixture
def one_dimm(tmp_path):
    """One DIMM whose values at the start are known, whatever those of the built-in platform are."""
    path = tmp_path / "set" / "one-dimm.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        f'name = "one-dimm"\ndescription = "One"\nextends = "optane-ni"\n{INTERVAL} = "36ns"\n{LATENCY} = "71ns"\n'
    )
    return str(path)


@pytest.fixture
def analytic(model):
    """A fake model in which bandwidth follows both values, each in rows of its own."""

    def row(platform, point):
        interval, latency = (float(platform[key].value.strip('"ns')) for key in (INTERVAL, LATENCY))
        if point["size"] > 256:
            return {"bandwidth_mib_s": 40_000 / interval, "ewr": None, "imc_written_bytes": 0}
        return {"bandwidth_mib_s": 60_000 * point["threads"] / latency, "ewr": None, "imc_written_bytes": 0}

    model.row = row
    return model


def test_hidden_values_are_found_again(one_dimm, write_dataset, both, tmp_path):
    hidden = Platform("optane-ni", set={INTERVAL: "50ns", LATENCY: "100ns"})
    points = [
        {"experiment": "random", "op": "load", "size": row["access_size"], "threads": row["threads"]} for row in LOADS
    ]
    measured = bench.run(hidden, [point | {"max_requests": MAX_REQUESTS} for point in points])["bandwidth_mib_s"]
    rows = [row | {"throughput": value} for row, value in zip(LOADS, measured, strict=True)]
    directory = write_dataset(tmp_path / "set", "bandwidth", rows)
    outcome = fit(directory, [one_dimm], tmp_path / "new.toml", parameters=both, folds=2)

    fitted = Platform(tmp_path / "new.toml")
    assert float(fitted[INTERVAL].value.strip('"ns')) == pytest.approx(50, rel=0.03)
    assert float(fitted[LATENCY].value.strip('"ns')) == pytest.approx(100, rel=0.03)
    assert outcome.before.mean > 0.1 > 0.02 > outcome.after.mean
    assert outcome.left_out.mean < 0.03
    assert not any(one.at_bound for one in outcome.parameters)
    assert "36ns before, 20ns to 80ns allowed; set; xpline fit --dataset set" in fitted[INTERVAL].source
    assert bench.latency(fitted, op="load", max_requests=1000).height == 1


def test_the_account_says_what_a_fit_has_not_seen(one_dimm, analytic, directory, both, tmp_path):
    told = []
    progress = {"on_progress": lambda done, total: told.append((done, total))}
    outcome = fit(directory, [one_dimm], tmp_path / "new.toml", parameters=both, folds=4, **progress)
    assert [done for done, _ in told] == list(range(1, len(analytic.ran) + 1))
    assert all(done <= total for done, total in told)
    assert [(fold.left_out.n, fold.fitted.n, fold.others.n) for fold in outcome.folds] == [(4, 4, 12)] * 4
    assert {fold.others_before.mean > fold.others.mean for fold in outcome.folds} == {True}
    assert outcome.fitted.n == outcome.left_out.n == outcome.available == 16
    assert outcome.misfit_after < outcome.misfit_before
    interval, latency = outcome.parameters
    assert interval.sensitivity == pytest.approx(0.5, rel=0.1)  # half of the rows follow it in proportion
    assert latency.sensitivity == pytest.approx(0.5, rel=0.1)
    assert len(interval.without_fold) == 4
    account = json.loads(json.dumps(outcome.as_dict()))
    assert account["parameters"][0]["key"] == INTERVAL
    assert account["within_a_tenth"] == (account["ratio"]["mean"] <= 1.1)


def test_a_value_that_wants_to_leave_its_bounds_is_flagged(one_dimm, analytic, directory, tmp_path):
    narrow = parameters(tmp_path / "p.toml", (INTERVAL, "35ns", "37ns"))
    (interval,) = fit(directory, [one_dimm], tmp_path / "new.toml", parameters=narrow, folds=2).parameters
    assert interval.at_bound
    assert interval.after == "37ns"  # about 40 ns would fit


def test_values_are_put_on_every_platform_that_shares_them(analytic, write_dataset, both, tmp_path):
    rows = [row | {"interleaving": i % 2, "throughput": 1500.0 + i} for i, row in enumerate(LOADS)]
    directory = write_dataset(tmp_path / "set", "bandwidth", [*rows, *({"media": "ldram"} for _ in range(4))])
    outcome = fit(directory, ["optane"], tmp_path / "new.toml", parameters=both, folds=2)
    assert [path.name for path in outcome.files] == ["new.toml", "new-optane-ni.toml"]  # nothing of dram was fitted
    six, one = (Platform(path) for path in outcome.files)
    assert six[INTERVAL].value == one[INTERVAL].value != Platform("optane")[INTERVAL].value
    assert (six["interleave.dimms"].value, one["interleave.dimms"].value) == ("6", "1")
    assert {name for name, _ in analytic.ran} == {"optane", "optane-ni"}


def test_a_platform_file_stands_for_one_dimm_too(analytic, directory, both, tmp_path):
    base = tmp_path / "mine.toml"
    base.write_text('name = "mine"\ndescription = "Mine"\nextends = "optane"\n[optane.media]\nread_interval = "30ns"\n')
    (tmp_path / "out").mkdir()
    outcome = fit(directory, [str(base)], tmp_path / "out" / "new.toml", parameters=both, folds=2)
    assert outcome.parameters[0].before == "30ns"
    assert 'extends = "../mine.toml"' in (tmp_path / "out" / "new.toml").read_text()
    assert Platform(tmp_path / "out" / "new-optane-ni.toml")["interleave.dimms"].value == "1"


def test_what_a_host_has_is_fitted_on_all_its_memories(model, write_dataset, tmp_path):
    rows = [{"throughput": 900.0, "threads": n, "operation": "NTStore"} for n in range(1, 7)]
    directory = write_dataset(tmp_path / "set", "bandwidth", [*rows, *(row | {"media": "ldram"} for row in rows)])
    now = float(Platform("optane-ni")["core.nt_interval"].value.strip('"ns'))
    shared = parameters(tmp_path / "p.toml", ("core.nt_interval", f"{now / 2}ns", f"{now * 2}ns"))
    outcome = fit(directory, ["optane-ni"], tmp_path / "new.toml", parameters=shared, folds=2)
    assert [path.name for path in outcome.files] == ["new.toml", "new-dram.toml"]
    assert {Platform(path)["memory"].value for path in outcome.files} == {'"optane"', '"dram"'}
    assert {name for name, _ in model.ran} == {"optane-ni", "dram"}


def test_an_interrupted_fit_ends_as_if_it_had_not_been(one_dimm, analytic, directory, both, tmp_path):
    whole = fit(directory, [one_dimm], tmp_path / "a" / "new.toml", **make(tmp_path / "a", both))
    total = len(analytic.ran)
    analytic.ran.clear()
    for stop in (5, total // 3, total // 2):
        analytic.stop_after = stop
        with pytest.raises(KeyboardInterrupt):
            fit(directory, [one_dimm], tmp_path / "b" / "new.toml", **make(tmp_path / "b", both))
        assert not (tmp_path / "b" / "new.toml").exists()
    analytic.stop_after = None
    resumed = fit(directory, [one_dimm], tmp_path / "b" / "new.toml", **make(tmp_path / "b", both))
    assert len(analytic.ran) == total  # nothing ran twice
    assert (tmp_path / "a" / "new.toml").read_bytes() == (tmp_path / "b" / "new.toml").read_bytes()
    assert whole.as_dict() | {"files": []} == resumed.as_dict() | {"files": []}


def make(folder, file):
    folder.mkdir(exist_ok=True)
    return {"parameters": file, "folds": 2}


def test_jobs_do_not_matter(one_dimm, directory, both, tmp_path):
    found = []
    for jobs in (1, 2):
        out = tmp_path / f"jobs-{jobs}"
        outcome = fit(directory, [one_dimm], out / "new.toml", jobs=jobs, sample=8, budget=4, **make(out, both))
        found.append((outcome.as_dict() | {"files": []}, (out / "new.toml").read_bytes()))
    assert found[0] == found[1]


def test_rows_that_do_not_tell_are_not_run_for_a_parameter(one_dimm, analytic, directory, tmp_path):
    path = parameters(tmp_path / "p.toml", (INTERVAL, "20ns", "80ns"), (LATENCY, "30ns", "150ns"))
    path.write_text(path.read_text().replace('"20ns"', '"20ns"\nrows = ["access_size=1024|4096"]'))
    outcome = fit(directory, [one_dimm], tmp_path / "new.toml", parameters=path, folds=2)
    assert outcome.parameters[0].sensitivity == pytest.approx(1, rel=0.1)
    assert outcome.available == 16


def test_a_parameter_without_rows_is_named_and_not_fitted(one_dimm, analytic, directory, tmp_path):
    path = parameters(tmp_path / "p.toml", (INTERVAL, "20ns", "80ns"), (LATENCY, "30ns", "150ns"))
    path.write_text(path.read_text().replace('"20ns"', '"20ns"\nrows = ["file=flush"]'))
    outcome = fit(directory, [one_dimm], tmp_path / "new.toml", parameters=path, folds=2)
    assert [one.key for one in outcome.parameters] == [LATENCY]
    assert outcome.notes == [f"{INTERVAL} is not fitted: no row tells about it"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"directory": "nowhere"}, "does not exist"),
        ({"platforms": ["optane-nine"]}, "no platform `optane-nine`"),
        ({"platforms": ["optane-ni", "optane-ni"]}, "stands for the rows of optane-ni already"),
        ({"platforms": ["dram"]}, "platform dram has none of the parameters to fit"),
        ({"out": "no/new.toml"}, "does not exist; create it first"),
        ({"only": ["optane.colour"]}, "--only optane.colour: .*parameters that may be fitted are"),
        ({"folds": 9}, "9 folds need at least 18"),
        ({"budget": 3}, "--budget 3: one step of a fit of 2 parameters takes 4 runs"),
        ({"out": "mine.toml", "platforms": ["mine.toml"]}, "cannot extend itself"),
    ],
)
def test_bad_input_writes_nothing(one_dimm, analytic, directory, both, tmp_path, monkeypatch, change, problem):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text('name = "mine"\ndescription = "Mine"\nextends = "optane-ni"\n')
    before = sorted(tmp_path.rglob("*"))
    usual = {"directory": "set", "platforms": [one_dimm], "out": "new.toml", "parameters": both, "folds": 2}
    with pytest.raises(XplineError, match=problem):
        fit(**usual | change)
    assert sorted(tmp_path.rglob("*")) == before
    assert analytic.ran == []


def test_a_value_outside_of_its_bounds_is_refused(one_dimm, analytic, directory, tmp_path):
    path = parameters(tmp_path / "p.toml", (INTERVAL, "40ns", "80ns"))
    with pytest.raises(
        XplineError, match=r"read_interval = \"36ns\" .* is outside of its bounds for fitting, 40ns to 80"
    ):
        fit(directory, [one_dimm], tmp_path / "new.toml", parameters=path)
    path = parameters(tmp_path / "p.toml", (INTERVAL, "0ns", "80ns"))
    path.write_text(path.read_text() + 'scale = "linear"\n')
    with pytest.raises(XplineError, match=r"bounds of optane.media.read_interval .*allowed: a time from 1ps"):
        fit(directory, [one_dimm], tmp_path / "new.toml", parameters=path)


def run(arguments):
    with pytest.raises(SystemExit) as ended:
        main(["fit", *map(str, arguments)])
    return ended.value.code or 0


def test_the_command_prints_the_account_and_names_the_files(one_dimm, analytic, directory, both, tmp_path, capsys):
    arguments = ["--dataset", directory, "--platform", one_dimm, "--out", tmp_path / "new.toml"]
    arguments += ["--parameters", both, "--folds", 2]
    assert run(arguments) == 0
    out, err = capsys.readouterr()
    assert re.search(rf"{INTERVAL} +36ns +[\d.]+ns +20ns to 80ns +no", out)
    assert re.search(r"all folds +16( +[\d.]+%){9} +[\d.]+", out)
    assert re.search(
        r"error on left-out configurations over that on fitted ones: mean [\d.]+ \(95 % .*within a tenth", out
    )
    assert "new.toml" in err
    assert run([*arguments, "--only", "optane.xpbuffer", "--json"]) == 0
    assert [one["key"] for one in json.loads(capsys.readouterr().out)["parameters"]] == [LATENCY]


def test_the_command_refuses_bad_input_and_says_how_to_go_on(one_dimm, analytic, directory, both, tmp_path, capsys):
    arguments = ["--dataset", directory, "--platform", one_dimm, "--out", tmp_path / "new.toml"]
    assert run([*arguments, "--parameters", tmp_path / "none.toml"]) == 2
    assert "none.toml: cannot be read" in capsys.readouterr().err
    assert run([*arguments, "--folds", 1]) == 2
    assert not (tmp_path / "new.toml").exists() and not (tmp_path / "new.toml.cache").exists()
    analytic.stop_after = 5
    assert run([*arguments, "--parameters", both, "--folds", 2]) == 130
    assert "run the same command again" in capsys.readouterr().err
    assert not (tmp_path / "new.toml").exists()


def test_the_best_of_all_searches_is_written(one_dimm, analytic, directory, both, tmp_path, monkeypatch):
    from xpline.fit import run as module

    def lost(parameters, start, deviations, budget):
        found = search(parameters, start, deviations, budget)
        calls.append(found)
        return replace(found, values=start) if len(calls) == 1 else found

    calls, search = [], module.search
    monkeypatch.setattr(module, "search", lost)
    outcome = fit(directory, [one_dimm], tmp_path / "new.toml", parameters=both, folds=2)
    assert outcome.parameters[0].after in outcome.parameters[0].without_fold
    assert outcome.misfit_after < outcome.misfit_before
