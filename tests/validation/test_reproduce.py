"""A reproduction on a made-up model: what it writes, and what it leaves alone."""

from __future__ import annotations

import csv
import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import polars as pl
import pytest

from xpline.cli import main
from xpline.errors import XplineError
from xpline.files import replace_file
from xpline.reproduce import reproduce
from xpline.sweeps import all_cases

FIGURES = [
    "latency", "bandwidth-threads", "bandwidth-size", "ewr-bandwidth", "xpbuffer", "flush-instructions",
    "sfence-interval", "imc-contention", "tail-latency", "latency-region", "replacement", "dimm-contention",
    "stand-ins", "loaded-latency", "memory-mode", "sockets",
]  # fmt: skip


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """A data set with one figure's values, and one row of the sweep."""
    directory = tmp_path_factory.mktemp("dataset")
    for name, text in {
        "data/flush.csv": "__key__,throughput,ewr,task_type,media,interleaving,op,access_size,clwb_size,fence_size,"
        "threads,avgpower\nstring\nk,1024,0.9,ClwbFence,lpmem,0,0,256,64,256,1,15000\n",
        "graphs/04-bandwidth_thcount_optane.csv": "Threads,Read,Write(clwb),Write(ntstore)\n1,3,4,2\n24,37,7,8\n",
    }.items():
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(text)
    return directory


@pytest.fixture(scope="module")
def outcome(machine, dataset, tmp_path_factory):
    """A reproduction with a data set, made once."""
    return reproduce(tmp_path_factory.mktemp("out") / "deep" / "out", dataset=dataset)


@pytest.fixture(scope="module")
def out(outcome):
    return outcome.index.parent


def test_it_writes_a_page_and_every_figure_thrice(out):
    pictures = [f"{figure}.{suffix}" for figure in FIGURES for suffix in ("svg", "png", "csv")]
    assert sorted(path.name for path in out.iterdir()) == sorted(["index.html", "claims.csv", "points.csv", *pictures])
    for figure in FIGURES:
        assert ET.parse(out / f"{figure}.svg").getroot().tag.endswith("svg")
        assert (out / f"{figure}.png").read_bytes().startswith(b"\x89PNG")


def test_every_point_runs_once(machine, outcome):
    runs = [(platform, json.dumps(point, sort_keys=True)) for platform, point in machine.ran]
    assert sorted(runs) == sorted((case.platform, case.point) for case in all_cases())


def test_claims_are_judged_and_the_rest_is_named(outcome, out):
    with (out / "claims.csv").open() as file:
        judged = {row["id"]: row for row in csv.DictReader(file)}
    assert judged["lat-read-seq"]["model"] == "92 ns"
    assert judged["lat-read-seq"]["status"] == "fails"
    assert judged["hc-idle-dram"]["status"] == "disputed"
    assert judged["interleave"]["status"] == "given"
    assert judged["tail-max"]["model"] == "40000 ns"
    assert judged["pmemkv-remote"]["status"] == "not covered yet"
    counted = [row for row in judged.values() if row["status"] in ("holds", "fails")]
    holds = [row for row in counted if row["status"] == "holds"]
    assert outcome.summary.startswith(f"{len(holds)} of {len(counted)} covered claims hold")


def test_figures_that_are_off_are_counted_and_marked(outcome, out):
    measured = [figure for figure in outcome.figures if figure.error is not None]
    off = [figure.name for figure in measured if figure.is_off]
    assert off  # the made-up model is nothing like the device
    assert outcome.summary.endswith(
        f"{len(measured) - len(off)} of {len(measured)} figures have a median error of at most 10%"
    )
    marked = re.findall(r'class="tile fails" href="#([a-z-]+)"', (out / "index.html").read_text())
    assert marked == off


def test_measured_points_stand_in_the_figures_with_their_error(outcome, out):
    errors = {figure.name: figure.error for figure in outcome.figures}
    assert errors["sfence-interval"] == pytest.approx(1 - 1000 * 256 / 456 / 1024)
    assert errors["xpbuffer"] is None
    threads = pl.read_csv(out / "bandwidth-threads.csv").filter(source="measured")
    swapped = {("load", 1): 3, ("load", 24): 37, ("ntstore", 1): 4, ("ntstore", 24): 7}
    swapped |= {("store+clwb", 1): 2, ("store+clwb", 24): 8}  # the file's headers are the wrong way round
    assert {(series, x): y for series, x, y in threads.select("series", "x", "y").iter_rows()} == swapped


class Links(HTMLParser):
    """What a page refers to, outside the text of its scripts."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found += [(tag, value) for name, value in attributes if name in ("src", "href", "action", "data")]


def test_the_page_needs_nothing_but_itself(out):
    page = (out / "index.html").read_text()
    links = Links()
    links.feed(page)
    assert all(tag == "a" for tag, _ in links.found)
    local = {value for _, value in links.found if not value.startswith("#")}
    assert {name for name in local if not (out / name).is_file()} == set()
    assert "default-src 'none'" in page  # and the browser is told so
    assert "vegaEmbed" in page


def test_the_same_model_gives_the_same_bytes(machine, dataset, out, tmp_path):
    again = reproduce(tmp_path, dataset=dataset).index.parent
    for path in out.iterdir():
        assert path.read_bytes() == (again / path.name).read_bytes(), path.name


def test_it_works_without_a_data_set(machine, tmp_path):
    outcome = reproduce(tmp_path)
    assert [figure.error for figure in outcome.figures] == [None] * len(FIGURES)
    assert "--dataset DIR" in outcome.index.read_text()


def test_a_folder_that_cannot_be_made_stops_it_before_any_work(machine, tmp_path):
    (tmp_path / "file").write_text("in the way")
    before = len(machine.ran)
    with pytest.raises(XplineError, match=r"output folder .*file/out: cannot be created"):
        reproduce(tmp_path / "file" / "out")
    assert len(machine.ran) == before


def test_a_data_set_that_is_wrong_leaves_no_folder(machine, tmp_path):
    with pytest.raises(XplineError, match="does not exist"):
        reproduce(tmp_path / "out", dataset=tmp_path / "nowhere")
    assert not (tmp_path / "out").exists()


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("old")
    with pytest.raises(TypeError):
        replace_file(path, "text is not bytes")
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("p.csv", "old")]


def run(capsys, *arguments):
    """Exit status, standard output and standard error of the command line."""
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    return stopped.value.code or 0, *capsys.readouterr()


def test_the_command_prints_claims_and_a_summary(machine, dataset, tmp_path, capsys):
    code, printed, _ = run(capsys, "reproduce", "--out", tmp_path, "--dataset", dataset)
    assert code == 0  # claims that fail are shown, and are no error
    assert re.search(r"lat-read-seq .* 169.4 ns +92 ns +-45.7% +fails", printed)
    assert re.search(r"\d+ of \d+ covered claims hold; \d of \d figures have a median error of at most 10%\n", printed)
    assert re.search(r"Bandwidth against threads +\d+\.\d%, above 10%\n", printed)
    assert re.search(r"sfence interval +\d+\.\d%", printed)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["validate", "--dataset", "nowhere"], "data set nowhere: does not exist"),
        (["reproduce", "--dataset", "nowhere"], "data set nowhere: does not exist"),
        (["validate", "--dataset", ".", "--set", "lines"], "--set lines: write KEY=VALUE"),
        (["validate", "--dataset", ".", "--platform", "optane"], "--platform optane: write NAME=FILE"),
        (["reproduce", "--out", "file/out"], "output folder file/out: cannot be created"),
    ],
)
def test_bad_input_has_status_2_and_writes_nothing(machine, arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    code, _, error = run(capsys, *arguments)
    assert code == 2
    assert message in error
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_validate_prints_the_error_by_slice(machine, dataset, tmp_path, capsys):
    code, printed, error = run(capsys, "validate", "--dataset", dataset, "--predictions", tmp_path / "p.csv")
    assert code == 0
    assert re.search(r"all +1 +44\.6%", printed)
    assert re.search(r"flush +ClwbFence +lpmem +0 +- +1 +44\.6%", printed)
    assert "1 configurations simulated" in error
    assert (tmp_path / "p.csv").read_text().splitlines()[1].startswith("k,flush,561.4035,0.9")
