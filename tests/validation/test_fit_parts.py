"""The parts of a fit: what it aims at, how it is divided, what may be fitted."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xpline import dataset
from xpline.cases import SWEEP
from xpline.errors import XplineError
from xpline.fit import quantity
from xpline.fit.members import members
from xpline.fit.objective import EWR_WEIGHT, Objective, Predicted, misfit
from xpline.fit.outcome import Sides, ratio
from xpline.fit.parameters import Parameter, read_parameters, select
from xpline.fit.search import search
from xpline.fit.targets import folds, sample, targets
from xpline.platform import Platform
from xpline.score import score

#: Rows of few values, so that configurations repeat and share cases.
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "threads": st.integers(1, 4),
            "access_size": st.sampled_from([64, 128]),
            "operation": st.sampled_from(["Load", "NTStore"]),
            "task_type": st.sampled_from(["RandBW", "StrideBW"]),
            "media": st.sampled_from(["lpmem", "ldram"]),
            "avgpower": st.sampled_from([0, 15000]),
            "version": st.sampled_from(["", "b9b739"]),
            "throughput": st.floats(900, 1000),
        }
    ),
    min_size=1,
    max_size=60,
)


@settings(deadline=None)  # it writes files
@given(rows=ROWS, count=st.integers(1, 6), size=st.integers(1, 80), seed=st.integers(0, 99))
def test_folds_never_split_a_configuration(write_dataset, rows, count, size, seed):
    with tempfile.TemporaryDirectory() as folder:
        tables = dataset.read_tables(write_dataset(Path(folder), "bandwidth", rows))
    found, _ = targets(tables, {})
    sampled = sample(found, size, seed)
    of_fold = folds(sampled, count)
    assert len(of_fold) == len(sampled) == min(size, len(found))
    by_name, by_case = {}, {}
    for target, fold in zip(sampled, of_fold, strict=True):
        name = (target.file, *target.configuration.values())
        assert name not in by_name  # the repeats of a configuration are one target
        by_name[name] = fold
        for case in target.cases:
            assert by_case.setdefault(case, fold) == fold
    assert set(of_fold) <= set(range(count))
    assert sample(found, size, seed) == sampled


def test_slices_are_sampled_in_proportion_and_spread_over_folds(shared):
    found, reasons = targets(dataset.read_tables(shared("data/optane-study")), {})
    assert not reasons
    sampled = sample(found, len(found) // 10, seed=3)
    everything, taken = (Counter(target.stratum for target in one) for one in (found, sampled))
    assert all(abs(taken[slice] - n / 10) <= 1 for slice, n in everything.items())
    of_fold = folds(sampled, 5)
    for slice, n in taken.items():
        sizes = Counter(fold for fold, target in zip(of_fold, sampled, strict=True) if target.stratum == slice)
        assert max(sizes.values()) <= n / 5 + 2
    assert sample(found, 100, seed=3) != sample(found, 100, seed=4)


def test_errors_are_those_of_validate(shared):
    tables = dataset.read_tables(shared("data/optane-study"))
    rng = random.Random(5)
    by_case, rows = {}, []
    for table, planned in zip([t for t in tables.values() for _ in range(t.height)], dataset.plan(tables), strict=True):
        assert table.height
        if planned.case:
            throughput, ewr = by_case.setdefault(planned.case, (rng.uniform(100, 40_000), rng.uniform(0, 1)))
            rows.append((planned.key, throughput, ewr))
    schema = {"__key__": pl.String, "throughput": pl.Float64, "ewr": pl.Float64}
    points = score(tables, pl.DataFrame(rows, schema=schema, orient="row")).points.drop_nulls("predicted")
    found, _ = targets(tables, {})
    objective = Objective(found)
    values = [np.median([by_case[case] for case in target.cases], axis=0) for target in found]
    predicted = Predicted(*np.array(values).T)
    assert objective.errors(predicted) == pytest.approx(points["error"].to_numpy())
    scored = points["ewr_error"].is_not_null().to_numpy()
    assert scored.any()
    assert objective.ewr_errors(predicted)[scored] == pytest.approx(points["ewr_error"].drop_nulls().to_numpy())
    assert np.isnan(objective.ewr_errors(predicted)[~scored]).all()


def test_deviations_have_the_sign_and_the_dead_band_of_the_instrument(write_dataset, tmp_path):
    rows = [{"threads": n, "throughput": 1000.0, "ewr": 0.5} for n in (1, 2, 3)]
    found, _ = targets(dataset.read_tables(write_dataset(tmp_path, "bandwidth", rows)), {})
    objective = Objective(found)
    off = objective.deviations(Predicted(np.array([1006.0, 1012.8 + 100, 500.0]), np.array([0.5, 0.6, np.nan])))
    assert off[:3] == pytest.approx([0, np.log(1.1), np.log(519.2 / 1000)])
    assert off[3:] == pytest.approx([0, 0.1 * EWR_WEIGHT, EWR_WEIGHT])  # an EWR that is missing is off by 1
    assert misfit(np.zeros(6)) == 0


@settings(deadline=None, max_examples=20)  # it draws a bootstrap
@given(st.lists(st.tuples(st.floats(0.01, 1), st.floats(0.01, 2)), min_size=2, max_size=30))
def test_the_ratio_compares_the_same_configurations(pairs):
    fitted, left_out = np.array(pairs).T
    twice = np.column_stack([fitted, fitted])
    found = ratio(twice, left_out)
    assert found.mean == pytest.approx(left_out.mean() / fitted.mean(), abs=1e-4)
    assert found.median == pytest.approx(np.median(left_out) / np.median(fitted), abs=1e-4)
    assert found.mean_interval[0] <= found.mean_interval[1]
    assert ratio(twice, fitted).mean_interval == (1, 1)
    assert ratio(twice * 0, fitted * 0).mean == 1


@given(st.integers(2, 5), st.integers(2, 20), st.integers(0, 9))
def test_each_configuration_is_left_out_once(count, points, seed):
    rng = np.random.default_rng(seed)
    fold_of, by_fold = rng.integers(count, size=points), rng.random((count, points))
    sides = Sides(fold_of, by_fold[0], by_fold)
    for i in range(points):
        assert sides.left_out[i] == by_fold[fold_of[i], i]
        assert sorted([*sides.fitted[i], sides.left_out[i]]) == sorted(by_fold[:, i])


@given(st.floats(1e-3, 1e6), st.sampled_from(["ps", "ns", "us", "", "KiB", "W", "GHz"]))
def test_quantities_come_back(number, unit):
    value = quantity.rounded(number, integer=False)
    assert quantity.parse(quantity.to_toml(quantity.render(value, unit))) == (value, unit)
    assert value == pytest.approx(number, rel=1e-3)


@given(st.floats(0, 1), st.booleans(), st.booleans())
def test_a_position_leads_to_a_value_within_the_bounds(position, log, integer):
    parameter = Parameter("core.fence", 3.0, 41.0, "ns", log, integer)
    value = parameter.value(position)
    assert 3 <= value <= 41
    assert value == (round(value) if integer else pytest.approx(parameter.value(parameter.position(value))))
    assert parameter.position(value) == pytest.approx(position, abs=0.2 if integer else 1e-3)


@pytest.mark.parametrize("base", SWEEP)
def test_our_own_parameters_stand_within_their_bounds(base):
    entries = {entry.key: entry.value for entry in Platform(base).show()}
    mine = [parameter for parameter in read_parameters() if parameter.key in entries]
    assert len(mine) > 5
    for parameter in mine:
        value = quantity.convert(*quantity.parse(entries[parameter.key]), parameter.unit)
        is_off = value == 0 == parameter.low
        assert is_off or parameter.low < value < parameter.high
        for bound in (parameter.low, parameter.high):
            Platform(base, set={parameter.key: parameter.text(bound)})


def test_a_prefix_is_a_section_or_a_key():
    own = read_parameters()
    media = select(own, ["optane.media"])
    assert media and all(one.key.startswith("optane.media.") for one in media)
    assert [one.key for one in select(own, ["l3.hit", "mesh.request"])] == ["l3.hit", "mesh.request"]
    with pytest.raises(XplineError, match=r"did you mean optane\.media\?"):
        select(own, ["optane.medai"])


GOOD = {"key": '"core.fence"', "low": '"2ns"', "high": '"32ns"'}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"key": '"core.fences"'}, r"no platform has the key 'core.fences'; did you mean core.fence\?"),
        ({"key": "3"}, "no platform has the key 3"),
        ({"colour": '"red"'}, "unknown colour"),
        ({"low": None}, "missing low"),
        ({"low": '"64ns"'}, "low = 64ns must be less than high = 32ns"),
        ({"low": '"32000ps"'}, "must be less than"),
        ({"low": '"quick"'}, "low = 'quick' is no quantity"),
        ({"low": '"2KiB"'}, "units that do not go together"),
        ({"low": "2"}, "units that do not go together"),
        ({"low": '"0ns"'}, "above 0 on a logarithmic scale"),
        ({"scale": '"square"'}, 'write "log" or "linear"'),
        ({"integer": "1"}, "write true or false"),
        ({"integer": "true", "low": '"2.5ns"'}, "must be whole"),
        ({"rows": '"operation=Load"'}, "write a list of texts"),
        ({"rows": '["colour=red"]'}, "'colour=red': write COLUMN=VALUE"),
        ({"rows": '["operation"]'}, "'operation': write COLUMN=VALUE"),
    ],
)
def test_a_wrong_entry_is_refused(tmp_path, change, problem):
    path = tmp_path / "mine.toml"
    entry = {key: value for key, value in (GOOD | change).items() if value is not None}
    path.write_text("[[parameter]]\n" + "\n".join(f"{key} = {value}" for key, value in entry.items()))
    with pytest.raises(XplineError, match=problem) as error:
        read_parameters(path)
    assert "mine.toml, entry 1" in str(error.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", r"expected a list of \[\[parameter\]\]"),
        ("parameter = 3", r"expected a list of \[\[parameter\]\]"),
        ("[[parameters]]", "found parameters"),
        ("[[parameter]", "not valid TOML"),
        ('[[parameter]]\nkey = "core.fence"\nlow = "2ns"\nhigh = "3ns"\n' * 2, "core.fence stands there 2 times"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, text, problem):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(XplineError, match=problem):
        read_parameters(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(XplineError, match=r"gone\.toml: cannot be read: No such file"):
        read_parameters(tmp_path / "gone.toml")


def test_a_platform_given_for_other_rows_is_used(tmp_path):
    for name, base in (("mine", "optane"), ("mine-dram", "dram")):
        (tmp_path / f"{name}.toml").write_text(
            f'name = "{name}"\ndescription = "M"\nextends = "{base}"\ncore.fence = "9ns"\n'
        )
    group = members([str(tmp_path / "mine.toml"), str(tmp_path / "mine-dram.toml")])
    assert [member.name for member in group.all] == [
        *("optane", "dram", "optane-ni", "optane-remote", "dram-remote", "optane-2018")
    ]
    assert group["dram"].file.endswith("mine-dram.toml")
    # The DRAM file has a line of its own.
    assert group.sharing("core.fence") == {"optane", "optane-ni", "optane-remote", "optane-2018"}
    assert group["optane-2018"].file.endswith("mine.toml")
    assert group["optane-2018"].platform["optane.media.bank_period"].value == "32KiB"
    assert "optane-2018" not in group.sharing("optane.media.bank_period")
    assert group["dram-remote"].platform["core.fence"].value == '"9ns"'
    assert group["dram-remote"].platform["nodes.memory"].value == "1"
    assert group.sharing("core.fill_buffers") == set(SWEEP)


def rows_of(optimum, asked, count=40):
    """Deviations of rows that each follow one or two of the values, least at the optimum; the last value moves none."""
    weights = np.random.default_rng(1).random((count, len(optimum)))
    weights[:, -1] = 0
    return [np.concatenate([weights @ np.log(np.array(values) / optimum), np.zeros(count)]) for values, _ in asked]


BETWEEN = st.floats(12, 90)


@given(BETWEEN, BETWEEN, st.tuples(st.floats(10, 100), st.floats(10, 100), st.floats(10, 100)), st.booleans())
@settings(deadline=None, max_examples=50)  # the first one imports scipy
def test_the_search_finds_the_least_misfit_from_anywhere(first, second, start, integer):
    second = round(second) if integer else second
    parameters = [Parameter("a", 10, 100, "ns"), Parameter("b", 10, 100, integer=integer), Parameter("c", 10, 100)]
    start = (start[0], round(start[1]) if integer else start[1], start[2])
    found = search(parameters, start, lambda asked: rows_of(np.array([first, second, 50]), asked), budget=100)
    assert found.converged and found.runs <= 100
    near = 0.15 if integer else 0.08  # a whole number moves in jumps, and the others make up for them
    assert found.values[:2] == pytest.approx((first, second), rel=near)
    assert found.misfit < 0.02
    assert found.values[2] == pytest.approx(start[2], rel=0.05)  # nothing tells about it


def test_the_search_keeps_to_its_budget():
    parameters = [Parameter(key, 10, 100) for key in "abc"]
    runs = []

    def deviations(asked):
        runs.extend(asked)
        return rows_of(np.array([20, 70, 50]), asked)

    found = search(parameters, (90.0, 15.0, 50.0), deviations, budget=6)
    assert found.runs == len(runs) <= 6 and not found.converged
    first = misfit(rows_of(np.array([20, 70, 50]), [((90.0, 15.0, 50.0), None)])[0])
    assert found.misfit < first
