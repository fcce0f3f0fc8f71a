"""Judging claims: the rules, and the measurements themselves put in the place of the model."""

from __future__ import annotations

import json
from statistics import median

import pytest

from xpline.cases import Case, Platforms
from xpline.claims import Claim, covered, judge, read_claims, rules
from xpline.figures import Measurements
from xpline.sweeps import (
    KIB,
    LATENCY,
    OPS,
    PERSIST_BANDWIDTH,
    PERSIST_LATENCY,
    SIZES,
    THREADS,
    XPBUFFER,
    Results,
    all_cases,
)

#: What a reproduction has to be able to judge.
WANTED = """lat-read-seq lat-read-rand lat-read-seq-dram lat-read-rand-dram lat-ntstore lat-clwb lat-ntstore-dram
lat-clwb-dram lat-gap lat-gap-dram bw-ni-read bw-ni-write bw-ni-ratio bw-ni-peak-threads bw-dram-ratio bw-il-read
bw-il-write bw-il-peak-threads-clwb bw-small-random bw-4k-dip bw-24k-peak ewr-64 ewr-256 ewr-8t ewr-noflush ewr-flush
bw-8t xpbuffer flush-helps-above nt-lat-crossover nt-bw-crossover sfence-peak sfence-late imc-spread imc-wpq hc-idle
hc-4k-vs-256 sa-read-rand sa-read-seq sa-read-peak sa-write-peak sa-1t-store sa-1t-load sa-clwb
tail-rate tail-max tail-locality tail-dram"""


def claim(quantity="bandwidth", value="10", unit="GB/s", note=""):
    return Claim("an-id", "a source", "optane", "what", quantity, value, unit, note)


def judged(rule, one=None):
    return rule(one or claim(), Results({}, None))


def test_every_claim_is_read_and_every_judge_has_its_claim():
    ids = [one.id for one in read_claims()]
    assert len(ids) == len(set(ids))
    assert covered() <= set(ids)
    assert set(WANTED.split()) <= covered()


@pytest.mark.parametrize(
    ("quantity", "published", "model", "status"),
    [
        ("latency", "100", 110, "holds"),
        ("latency", "100", 111, "fails"),
        ("bandwidth", "100", 115, "holds"),
        ("bandwidth", "100", 84.9, "fails"),
        ("ratio", "100", 85, "holds"),
        ("ewr", "0.5", 0.549, "holds"),
        ("ewr", "0.5", 0.449, "fails"),
    ],
)
def test_the_tolerance_depends_on_the_quantity(quantity, published, model, status):
    assert judged(rules.number(lambda _: model), claim(quantity, published)).status == status


@pytest.mark.parametrize(("model", "status"), [(128, "holds"), (64, "holds"), (None, "fails"), (256, "fails")])
def test_a_size_holds_within_one_step(model, status):
    rule = rules.step(lambda _: model, [32, 64, 128, 256])
    assert judged(rule, claim("size", "64", "B")).status == (status if model != 256 else "fails")


def test_no_size_at_all_is_the_step_before_the_first():
    assert judged(rules.step(lambda _: None, [32, 64]), claim("size", "32", "B")).model == "under 32 B"
    assert judged(rules.step(lambda _: None, [32, 64]), claim("size", "32", "B")).status == "holds"


def test_what_sources_disagree_about_is_not_counted():
    disputed = judged(rules.number(lambda _: 10), claim(note="sources disagree: 10 or 20"))
    assert (disputed.status, disputed.detail) == ("disputed", "sources disagree: 10 or 20")


def test_what_a_platform_file_states_is_not_counted():
    assert judged(rules.given(lambda _: "4 lines")).status == "given"


def test_published_values_for_people():
    assert claim("size", "4096;24576", "B").published == "4 KiB, 24 KiB"
    assert claim("threads", "1..4", "threads").published == "1 to 4 threads"
    assert claim("ewr", "0.25", "1").published == "0.25"


def test_all_cases_are_distinct_points():
    cases = all_cases()
    assert len(cases) == len(set(cases)) < 1600
    assert all("experiment" in json.loads(one.point) for one in cases)


class Measured(Results):
    """The measurements in the place of the model, as far as they were published."""

    def __init__(self, directory):
        super().__init__({}, Platforms())
        self.measured = Measurements(directory)
        self.known: dict[tuple[Case, str], float] = {}
        self._latencies()
        self._bandwidths()
        self._persistence()

    def value(self, case, column):
        if (case, column) in self.known:
            return self.known[case, column]
        same = self.measured.of(case)
        return same.bandwidth_mib_s / KIB if column == "bandwidth" else same.ewr

    def curve(self, sweep, column="bandwidth"):
        def has(case):
            return (case, column) in self.known or self.measured.of(case)

        return {step: self.value(case, column) for step, case in sweep.cases.items() if has(case)}

    def _keep(self, sweep, column, curve):
        self.known |= {(sweep.cases[x], column): y for x, y in curve.items() if x in sweep.cases}

    def _latencies(self):
        rows = self.measured.graph("02-best_case_latency.csv", ["", "DRAM", "Optane"])
        values = {name: dict(zip(("dram", "optane"), pair, strict=True)) for name, *pair in rows.iter_rows()}
        names = {"ntstore": "Write\\(ntstore)", "store+clwb": "Write\\(clwb)"}
        for (platform, op, pattern), case in LATENCY.items():
            name = names.get(op, f"Read\\{pattern.capitalize()}")
            self.known[case, "latency_mean_ns"] = values[name][platform]

    def _bandwidths(self):
        columns = dict(zip(OPS, ("Read", "Write(ntstore)", "Write(clwb)"), strict=True))
        swapped = {"ntstore": "Write(clwb)", "store+clwb": "Write(ntstore)"}
        for (platform, op), sweep in THREADS.items():
            column = swapped.get(op, "Read") if platform == "optane" else columns[op]
            file = f"04-bandwidth_thcount_{platform.replace('-', '_')}.csv"
            self._keep(sweep, "bandwidth", self.measured.curve(file, "Threads", column))
        for (platform, op), sweep in SIZES.items():
            file = f"05-bandwidth_accesssize_{platform.replace('-', '_')}.csv"
            self._keep(sweep, "bandwidth", self.measured.curve(file, "AccessSize", columns[op]))

    def _persistence(self):
        for op, sweep in PERSIST_BANDWIDTH.items():
            self._keep(sweep, "bandwidth", self.measured.curve("12-flush_instr_bw.csv", "", op))
        for op, sweep in PERSIST_LATENCY.items():
            self._keep(sweep, "latency_mean_ns", self.measured.curve("12-flush_instr_lat.csv", "", op))
        amplification = self.measured.curve("09-infer_xpbuffer.csv", "RegionSize", "WriteAmp")
        self._keep(XPBUFFER, "ewr", {region // 256: 1 / value for region, value in amplification.items()})


@pytest.fixture(scope="module")
def measured(shared):
    return Measured(shared("data/optane-study"))


#: Judged from published figures that any copy of the data set has.
FROM_FIGURES = """lat-read-seq lat-read-rand lat-read-seq-dram lat-read-rand-dram lat-ntstore lat-clwb lat-ntstore-dram
lat-clwb-dram lat-gap lat-gap-dram bw-ni-read bw-ni-write bw-ni-ratio bw-ni-peak-threads bw-dram-ratio bw-il-read
bw-il-write bw-il-peak-threads-clwb bw-small-random bw-4k-dip bw-24k-peak bw-8t xpbuffer flush-helps-above
nt-lat-crossover nt-bw-crossover hc-idle hc-4k-vs-256 sa-read-rand sa-read-seq sa-read-peak sa-write-peak"""


@pytest.mark.parametrize("name", FROM_FIGURES.split())
def test_the_measurements_meet_their_own_claims(measured, name):
    [result] = judge([one for one in read_claims() if one.id == name], measured)
    assert result.status == "holds", (result.model, result.error)


def test_a_device_that_is_not_one_fails(measured):
    """Turned upside down, the same measurements fail: the rules can tell."""
    upside_down = Measured.__new__(Measured)
    upside_down.__dict__ = measured.__dict__ | {"known": {key: 1 / value for key, value in measured.known.items()}}
    results = judge([one for one in read_claims() if one.id in FROM_FIGURES.split()], upside_down)
    assert sum(one.status == "holds" for one in results) <= 3


def test_published_gigabytes_are_gibibytes(shared):
    """The figures of the study equal its raw sweep in MiB/s when divided by 1024, not by 953.7."""
    measured = Measurements(shared("data/optane-study"))
    for op, column in [("load", "Read"), ("ntstore", "Write(ntstore)"), ("store+clwb", "Write(clwb)")]:
        figure = measured.curve("05-bandwidth_accesssize_optane_ni.csv", "AccessSize", column)
        raw = measured.sweep(SIZES["optane-ni", op])
        assert median(figure[size] / value for size, value in raw.items()) == pytest.approx(1, abs=0.01)
