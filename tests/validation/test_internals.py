"""The inside of a DIMM against what others measured: reader, checks, and the real measurements where they are."""

from __future__ import annotations

import re

import pytest

from xpline import bench, internals
from xpline.cases import Platforms
from xpline.cli import main
from xpline.errors import XplineError
from xpline.internals.checks import checks, knee
from xpline.internals.data import Internals, is_internals
from xpline.sweeps import CHASE, CONTENTION, KIB, MIB, REPLACEMENT, TAIL, WEAR, Results, all_cases, internals_cases

CLOCK = 2.4


@pytest.fixture
def folder(tmp_path):
    """Measurements of a made-up DIMM: 400 cycles to 16 KiB, 700 to 16 MiB, 800 beyond."""
    regions = [64 << step for step in range(20)] + [20 * MIB, 64 * MIB]
    latency = {region: 400 if region <= 16 * KIB else 700 if region <= 16 * MIB else 800 for region in regions}
    lines = "".join(f"{region},{cycles}\n" for region, cycles in latency.items())
    (tmp_path / "gen_hier.csv").write_text("region_size,average_latency\n" + lines)
    (tmp_path / "wearlevel_write_gap_dist.csv").write_text("9000\n9500\n9500\n18000\n")
    (tmp_path / "wearlevel_write_lat_dist.csv").write_text("100000\n110000\n120000\n")
    (tmp_path / "wearlevel_write.csv").write_text(
        "Iteration,Latency\n0,260\n1000,264\n1500,90000\n2000,260\n3500,94000\n"
    )
    (tmp_path / "rmw_replacement_same_order.csv").write_text("Iteration,Rate\n63,0.0\n64,0.0\n65,1.0\n66,1.0\n")
    for name, latencies in (("read", "800\n820\n8"), ("read_read", "880\n"), ("read_write_100", "2000\n2400\n2800\n")):
        (tmp_path / f"rw_cont_{name}.csv").write_text(latencies)
    return tmp_path


def results(**changed):
    """The rows of a DIMM like the made-up one, at 2.4 GHz; ``changed`` replaces what it does."""
    does = {
        "latency": lambda region: 400 if region <= 16 * KIB else 700 if region <= 16 * MIB else 800,
        "gone": lambda lines: float(lines > 64),
        "interval": {256: 9500, 64: 2000},
        "stall": {256: 110_000, 64: 92_000},
        "beside": {"nobody": 300, "a reader": 330, "a writer": 900},
    } | changed
    rows = {case: {"latency_mean_ns": does["latency"](region) / CLOCK} for region, case in CHASE.cases.items()}
    for sweep in REPLACEMENT.values():
        rows |= {case: {"miss_ratio": does["gone"](lines)} for lines, case in sweep.cases.items()}
    for size, case in WEAR.items():
        rows[case] = {"stall_interval": does["interval"][size], "stall_ns": does["stall"][size] / CLOCK}
    rows |= {case: {"latency_mean_ns": does["beside"][beside]} for beside, case in CONTENTION.items()}
    return Results(rows, Platforms())


def verdicts(found):
    return {check.quantity: check.holds for check in found}


def test_medians_and_curves_are_read(folder):
    data = Internals(folder)
    assert data.chase()[20 * MIB] == 800
    assert data.line_stalls() == (9500, 110_000)
    assert data.piece_stalls() == (2000, 92_000)
    assert data.contention() == {"nobody": 800, "a reader": 880, "a writer": 2400}
    assert data.replacement("xpbuffer", "same") == {63: 0, 64: 0, 65: 1, 66: 1}


def test_what_is_not_there_is_empty(folder):
    data = Internals(folder)
    assert (data.masked("12"), data.replacement("ait", "random"), Internals().contention()) == ({}, {}, {})
    assert (Internals().chase(), Internals().line_stalls(), Internals().piece_stalls()) == ({}, None, None)


def test_the_same_dimm_passes_every_check(folder):
    found = checks(results(), Internals(folder))
    assert len(found) == 6 + 1 + 4 + 2
    assert all(check.holds for check in found), found


@pytest.mark.parametrize(
    ("changed", "failing"),
    [
        ({"latency": lambda region: 300}, {"latency within the XPBuffer", "latency of 64 MiB"}),
        ({"gone": lambda lines: float(lines > 64) / 2}, {"XPBuffer: lines gone, read again in same order"}),
        ({"interval": {256: 11_500, 64: 2000}}, {"wear levelling: 256 B writes to a stall"}),
        (
            {"beside": {"nobody": 300, "a reader": 330, "a writer": 700}},
            {"contention: a read beside a writer, over one alone"},
        ),
    ],
)  # fmt: skip
def test_what_is_too_far_off_fails(folder, changed, failing):
    failed = {
        quantity for quantity, holds in verdicts(checks(results(**changed), Internals(folder))).items() if not holds
    }
    assert failing <= failed


def test_a_knee_may_be_one_step_off_and_not_two(folder):
    def buffer_of(last):
        return lambda region: 400 if region <= last else 700 if region <= 16 * MIB else 800

    at = {last: verdicts(checks(results(latency=buffer_of(last)), Internals(folder)))["knee of the XPBuffer"]
          for last in (8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB)}  # fmt: skip
    assert at == {8 * KIB: True, 16 * KIB: True, 32 * KIB: True, 64 * KIB: False}


def test_a_knee_is_where_the_latency_begins_to_rise():
    assert knee({1: 90, 2: 100, 4: 101, 8: 110, 16: 100}, start=2) == 4
    assert knee({2: 100, 4: 100}, start=2) == 4


def test_bad_files_are_named(folder):
    (folder / "gen_hier.csv").write_text("region_size,average_latency\n64,fast\n")
    with pytest.raises(XplineError, match=r"gen_hier\.csv: expected columns of numbers"):
        Internals(folder).chase()
    (folder / "gen_hier.csv").write_text("region,latency\n64,400\n")
    with pytest.raises(XplineError, match=r"gen_hier\.csv: no column region_size, average_latency"):
        Internals(folder).chase()


def test_another_folder_is_refused(tmp_path):
    assert not is_internals(tmp_path)
    with pytest.raises(XplineError, match="name the folder that holds them"):
        Internals(tmp_path)


def test_every_case_of_the_inside_is_part_of_a_reproduction():
    assert set(internals_cases()) <= set(all_cases())
    assert {case for sweep in TAIL.values() for case in sweep.cases.values()} <= set(all_cases())


def test_the_model_matches_the_measurements(shared, capsys):
    """Knees, plateaus, replacement, wear levelling and contention, by the tolerances that the checks state."""
    folder = shared("data/optane-internals/gen_hier.csv").parent
    with pytest.raises(SystemExit) as stopped:
        main(["validate", "--dataset", str(folder)])
    printed = capsys.readouterr()
    assert not stopped.value.code
    assert "knee of the AIT cache, address bits 12-14 kept 0" in printed.out
    held, of = map(int, re.search(r"(\d+) of (\d+) quantities", printed.err).groups())
    assert held == of == 25, printed.out


def test_probes_and_chases_of_the_model_come_to_python():
    table = bench.chase("optane-ni", region=["4KiB", "8MiB"], mask=["0", "4KiB"])
    assert table.select("region", "mask").rows() == [(4096, 0), (4096, 4096), (8 * MIB, 0), (8 * MIB, 4096)]
    probes = bench.replacement("optane-ni", buffer=["xpbuffer", "ait"], order="same", lines=65)
    assert probes["miss_ratio"].to_list() == [1.0, 1.0]
    assert internals.cycles_per_ns(Results({}, Platforms())) == CLOCK
