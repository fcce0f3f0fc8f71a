"""An account of the error: what bounds the worst points, what each mechanism is worth, and the page that shows it."""

from __future__ import annotations

import csv
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest

from xpline.cases import Platforms
from xpline.changes import Change
from xpline.cli import main
from xpline.dataset import read_tables
from xpline.report.account import write_account
from xpline.score import score
from xpline.validate import ablation, validate
from xpline.validate.ablation import sample, verdict

FIGURES = ["error-bandwidth", "error-ewr", "error-distribution", "error-bias"]

#: MiB/s that the fake model of this file gives with the platforms as they are, at the usual power.
MODEL = 1000.0


def row(platform, point):
    """A model bound by the media, or on DRAM by the core, with two laws: that of power, and one that slows loads down
    when rewriting costs no more than writing."""
    values = {entry.key: entry.value.strip('"') for entry in platform.show()}
    part = ("core.fill_buffers", "12") if "dram.tcl" in values else ("optane.media.banks", "16")
    relieved = values[part[0]] != part[1]
    watts = float(values.get("optane.power.budget", "15W").removesuffix("W")) / 15
    reads = point.get("op") == "load"
    slow = "dram.tcl" not in values and values["optane.ddrt.rewrite_transfer"] == values["optane.ddrt.write_transfer"]
    return {
        "bandwidth_mib_s": MODEL * watts * (3 if relieved else 1) * (0.5 if slow and reads else 1),
        "ewr": None if reads else 0.5,
        "imc_written_bytes": 0 if reads else 64,
    }


@pytest.fixture
def fake(model):
    """The fake model of this file in place of the simulator."""
    model.row = row
    return model


@pytest.fixture(scope="module")
def directory(write_dataset, tmp_path_factory):
    """40 loads that the model has right, 40 ntstores 50 % too fast, a point of DRAM three times too fast, one of
    remote memory, and some under another power budget."""
    folder = tmp_path_factory.mktemp("set")
    rows = [{"operation": "Load", "throughput": 1000, "access_size": 64 * size} for size in range(1, 41)]
    rows += [{"throughput": 2000 / 3, "ewr": 0.6, "access_size": 64 * size} for size in range(1, 41)]
    rows += [{"media": "ldram", "interleaving": 1, "operation": "Load", "avgpower": 0, "throughput": 250}]
    rows += [{"media": "rpmem", "local": 0, "interleaving": 0}]
    rows += [{"avgpower": 12500, "threads": threads, "throughput": 2500 / 3, "ewr": 0.5} for threads in (2, 3, 4)]
    write_dataset(folder, "bandwidth", rows)
    return write_dataset(folder, "flush", [{"threads": 2, "throughput": 1000, "ewr": 0.5}])


@pytest.fixture
def few(monkeypatch):
    """Two mechanisms: one that matters here, and one that this model does not have."""
    power = Change("law: power", "Rates follow the budget.", (("optane.power.budget", "optane.power.reference"),))
    idle = Change("fence", "A fence costs time.", (("core.fence", "0ps"),))
    monkeypatch.setattr(ablation, "MECHANISMS", [idle, power])


def test_the_worst_points_come_first_and_are_explained(fake, directory):
    outcome = validate(directory, worst=3)
    assert [one.case.platform for one in outcome.worst] == ["dram", "optane-ni", "optane-ni"]
    first, second, _ = outcome.worst
    assert first.error == pytest.approx((750 - 6.4) / 250)
    assert (first.bound.part, first.bound.gain) == ("core", pytest.approx(2.0))
    assert (second.bound.part, second.bound.gain) == ("media", pytest.approx(2.0))
    assert sorted(second.bound.gains.values()) == pytest.approx([0.0, 0.0, 0.0, 0.0, 2.0])


def test_a_point_that_is_too_slow_has_a_negative_error(fake, write_dataset, tmp_path):
    directory = write_dataset(tmp_path, "bandwidth", [{"operation": "Load", "throughput": 4000}])
    (only,) = validate(directory, worst=50).worst
    assert only.error == pytest.approx(-(3000 - 6.4) / 4000)
    assert only.words()[:2] == ["random", "--on optane-ni"]


def test_reliefs_win_over_what_the_user_overrides(fake, directory):
    outcome = validate(directory, only=["media=lpmem"], worst=1, platforms=Platforms({"optane.media.banks": 16}))
    assert outcome.worst[0].bound.part == "media"


def test_without_being_asked_nothing_more_runs(fake, directory):
    outcome = validate(directory)
    assert (outcome.worst, outcome.ablation) == ([], None)
    assert len(fake.ran) == outcome.simulated


def test_an_ablation_tells_what_pays(fake, few, directory):
    outcome = validate(directory, ablation=1000)
    assert outcome.ablation.points == 85
    power, fence = outcome.ablation.verdicts
    assert (power.mechanism.name, power.pays, power.touched) == ("law: power", True, 3)
    assert power.touched_on == pytest.approx(0, abs=0.01)
    assert power.touched_off == pytest.approx(0.2, abs=0.05)
    assert power.cost == pytest.approx(3 * (power.touched_off - power.touched_on) / 85)
    assert [one["name"] for one in power.suffering(2)] == ["RandBW lpmem 0 NTStore"]
    assert (fence.mechanism.name, fence.pays, fence.touched, fence.cost) == ("fence", False, 0, 0.0)
    assert outcome.ablation.on == outcome.score.total() | {
        key: outcome.ablation.on[key] for key in ("n", "median", "mean", "p90")
    }


def test_slices_that_suffer_are_named(fake, monkeypatch, directory):
    law = Change("rewriting", "", (("optane.ddrt.rewrite_transfer", "optane.ddrt.write_transfer"),))
    monkeypatch.setattr(ablation, "MECHANISMS", [law])
    (only,) = validate(directory, ablation=1000).ablation.verdicts
    (loads,) = only.suffering(2)
    assert loads == {"name": "RandBW lpmem 0 Load", "on": 0.0, "off": pytest.approx(0.4936)}


def test_a_sample_is_of_every_slice_and_always_the_same(fake, directory):
    points = validate(directory).score.points
    keys = sample(points, 20)
    assert keys == sample(points, 20)
    tables = read_tables(directory)
    taken = score({file: table.filter(table["__key__"].is_in(keys)) for file, table in tables.items()}, points.select(
        __key__="file", throughput="predicted", ewr="predicted_ewr"
    ).head(0))  # fmt: skip
    assert taken.by().select("file", "media", "operation", "n").rows() == [
        ("bandwidth", "ldram", "Load", 1),
        ("bandwidth", "lpmem", "Load", 9),
        ("bandwidth", "lpmem", "NTStore", 10),
        ("flush", "lpmem", None, 1),
    ]


def test_a_mechanism_pays_by_its_ewr_too(fake, directory):
    on = validate(directory).score
    off = type(on)(on.points.with_columns(ewr_error=on.points["ewr_error"] + 0.5), 0)
    found = verdict(Change("", "", ()), on, off)
    assert (found.cost, found.cost_ewr, found.pays) == (0.0, pytest.approx(0.5), True)


def test_an_interrupted_ablation_goes_on_where_it_stopped(fake, few, directory, tmp_path):
    kept = tmp_path / "deep" / "points.cache"
    fake.stop_after = 90
    with pytest.raises(KeyboardInterrupt):
        validate(directory, worst=2, ablation=1000, kept=kept)
    fake.stop_after = None
    whole = validate(directory, worst=2, ablation=1000, kept=kept)
    before = len(fake.ran)
    assert whole.resumed == 85  # the interruption came after the predictions
    again = validate(directory, worst=2, ablation=1000, kept=kept)
    assert len(fake.ran) == before
    assert again.ablation.on == whole.ablation.on


class Page(HTMLParser):
    """The links, the headings and the table rows of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.headings, self.rows, self._heading = [], [], 0, False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.links += [(tag, value) for name, value in attributes if name in ("src", "href", "action", "data")]
        self.rows += tag == "tr"
        self._heading = tag == "h2"

    def handle_data(self, data):
        if self._heading:
            self.headings.append(data)
            self._heading = False


@pytest.fixture
def out(fake, few, directory, tmp_path):
    """The folder of an account."""
    return write_account(validate(directory, worst=3, ablation=1000), tmp_path / "account").parent


def test_the_page_has_its_parts_and_needs_nothing_but_itself(out):
    pictures = [f"{figure}.{suffix}" for figure in FIGURES for suffix in ("svg", "png", "csv")]
    tables = ["points.csv", "slices.csv", "worst.csv", "ablation.csv"]
    assert sorted(path.name for path in out.iterdir()) == sorted(["index.html", *tables, *pictures])
    for figure in FIGURES:
        assert ET.parse(out / f"{figure}.svg").getroot().tag.endswith("svg")
    page = Page((out / "index.html").read_text())
    assert page.headings == ["Error by slice", "Figures", "The worst 3 points", "What each mechanism is worth"]
    assert all(tag == "a" for tag, _ in page.links)
    local = {value for _, value in page.links if not value.startswith("#")}
    assert {name for name in local if not (out / name).is_file()} == set()
    text = re.sub(r"\s+", " ", (out / "index.html").read_text())
    assert "1 rows have no prediction" in text
    assert re.search(r'<tr class="flagged"><td>bandwidth</td>.{0,80}<td>NTStore</td>', text)
    assert re.search(r'<tr class="flagged"><td>fence<br>', text)
    assert re.search(r"<tr><td>law: power<br>", text)
    with (out / "worst.csv").open() as file:
        assert [line["bound"] for line in csv.DictReader(file)] == ["core", "media", "media"]
    with (out / "ablation.csv").open() as file:
        assert [line["without"] for line in csv.DictReader(file)] == ["nothing", "law: power", "fence"]


def test_a_data_set_of_reads_alone_has_a_page(fake, write_dataset, tmp_path):
    rows = [{"media": "ldram", "operation": "Load", "avgpower": 0}]
    index = write_account(validate(write_dataset(tmp_path, "bandwidth", rows)), tmp_path / "out")
    assert "--ablate" in index.read_text()


def test_a_data_set_without_a_prediction_has_a_page(fake, write_dataset, tmp_path):
    outcome = validate(
        write_dataset(tmp_path, "bandwidth", [{"media": "rpmem", "local": 0, "interleaving": 0}]), worst=50, ablation=10
    )
    assert "100.0 %" in write_account(outcome, tmp_path / "out").read_text()


def run(capsys, *words):
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    return stopped.value.code or 0, *capsys.readouterr()


def test_the_command_prints_and_writes_it_all(fake, few, directory, tmp_path, capsys):
    out = tmp_path / "out"
    code, printed, error = run(capsys, "validate", "--dataset", directory, "--out", out, "--explain", "--ablate")
    assert code == 0
    assert re.search(r"\+297% +1000 +250 +core ×3.0 +random --on dram --op load --size 256 --threads 1", printed)
    assert re.search(r"law: power .* yes", printed)
    assert re.search(r"fence .* no\b", printed)
    assert re.search(r"slices of 30 points or more with a median above 14%", printed)
    assert re.search(r"RandBW +lpmem +0 +NTStore +43 .* !\n", printed)
    assert "1 of 2" in printed
    assert (out / "index.html").is_file() and (out / "points.cache").is_file()
    assert "85 configurations simulated" in error


def test_a_data_set_that_is_wrong_leaves_no_folder(tmp_path, capsys):
    code, _, error = run(capsys, "validate", "--dataset", tmp_path / "nowhere", "--out", tmp_path / "out")
    assert code == 2
    assert "does not exist" in error
    assert list(tmp_path.iterdir()) == []
