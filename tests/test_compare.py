"""Memories side by side, and the store of results."""

import polars as pl
import pytest

from xpline import XplineError, bench, table
from xpline.compare import compare
from xpline.figures.compare import draw
from xpline.results import Store, read


def rows(platform, curve, **settings):
    """A table of one memory: bandwidth by access size."""
    usual = {"experiment": "random", "op": "load", "threads": 1, "source": "model", "settled": True} | settings
    return table.from_rows(
        {"platform": platform, "size": size, "bandwidth_mib_s": value} | usual for size, value in curve.items()
    )


def test_ratios_are_to_the_first_and_over_shared_points_alone():
    found = compare(
        {"a": rows("fast", {64: 100.0, 256: 400.0, 1024: 500.0}), "b": rows("slow", {64: 50.0, 256: 100.0})}
    )
    assert found.memories == ["fast", "slow"]
    assert found.ratios().select("size", "slow / fast").rows() == [(64, 0.5), (256, 0.25)]


def test_curves_cross_where_straight_lines_on_logarithmic_axes_do():
    # 100 against 200, then 200 against 100: in the middle of 64 and 256 on a logarithmic axis.
    both = compare({"t": pl.concat([rows("a", {64: 100.0, 256: 200.0}), rows("b", {64: 200.0, 256: 100.0})])})
    (crossing,) = both.crossings()
    assert (crossing.before, crossing.after, crossing.axis) == ("b", "a", "size")
    assert crossing.at == pytest.approx(128)


def test_less_latency_is_better():
    def latencies(platform, *values):
        usual = {"experiment": "chase", "platform": platform}
        return [usual | {"region": 64 << i, "latency_mean_ns": ns} for i, ns in enumerate(values)]

    found = compare({"t": table.from_rows([*latencies("a", 1.0, 9.0), *latencies("b", 3.0, 3.0)])})
    (crossing,) = found.crossings()
    assert (crossing.before, crossing.after) == ("a", "b")


def test_the_same_memory_in_two_tables_is_told_apart():
    found = compare({"old": rows("host", {64: 1.0}), "new": rows("host", {64: 2.0})})
    assert found.memories == ["host (old)", "host (new)"]


def test_a_figure_an_experiment_and_a_panel_an_op():
    loads = pl.concat([rows(name, {64: 100.0, 256: 200.0}) for name in ("a", "b")])
    stores = pl.concat([rows(name, {64: 10.0, 256: 20.0}, op="ntstore") for name in ("a", "b")])
    (figure,) = draw(compare({"t": pl.concat([loads, stores])}))
    assert figure.data["panel"].unique().sort().to_list() == ["load", "ntstore"]
    assert figure.data.height == 8


def test_compare_from_the_command_line(xpline, tmp_path):
    table.write(rows("a", {64: 100.0, 256: 200.0}), tmp_path / "a.parquet")
    table.write(rows("b", {64: 200.0, 256: 100.0}), tmp_path / "b.csv")
    code, out, _ = xpline("compare", "a.parquet", "b.csv", "--out", "page")
    assert code == 0 and "a / " not in out and "b / a" in out
    assert "random: b is ahead up to size 128 B, a from there on" in out
    page = (tmp_path / "page" / "index.html").read_text()
    assert "Where they cross" in page and "chart-random-size" in page
    assert pl.read_parquet(tmp_path / "page" / "results.parquet").height == 4


def test_compare_measures_memories(xpline):
    code, out, _ = xpline("compare", "dram", "optane-ni", "--experiment", "persist-latency", "--with", "size=64,256")
    assert code == 0 and "optane-ni / dram" in out and "store+clwb" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dram"], "dram: is no file of results; to measure memories, name an --experiment"),
        (["no.csv"], "no.csv: cannot be read"),
        (["x.txt"], "x.txt: the suffix says what it is"),
        (["other.csv"], "other.csv: is no table of results: column platform is missing"),
        (["dram", "--experiment", "latency"], "dram alone; name another memory"),
        (["dram", "optane", "--experiment", "sofa"], "unknown; known are"),
        (["dram", "optane", "--experiment", "latency", "--with", "op"], "--with op: write NAME=VALUES"),
        (["a.csv", "--with", "size=64"], "--with size=64: needs --experiment"),
    ],
)
def test_what_cannot_be_compared_is_said(xpline, tmp_path, arguments, message):
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    code, out, err = xpline("compare", *arguments)
    assert (code, out) == (2, "") and message in err


def test_a_store_keeps_tables_of_models_and_hosts(tmp_path):
    store = Store(tmp_path / "r.duckdb")
    model = bench.latency("dram", max_requests=20_000)
    host = table.from_rows(
        [{"platform": "host", "experiment": "latency", "source": "host", "ci_low": 1.0, "noise": "x"}]
    )
    assert [store.add(model, "model"), store.add(host, "host", note="new machine")] == [1, 2]
    assert store.runs()["platforms"].to_list() == ["dram", "host"]
    assert store.show(2).select("ci_low", "noise").rows() == [(1.0, "x")]
    assert store.query("SELECT count(*) AS n FROM results WHERE ci_low IS NULL").item() == 1
    for column in table.COLUMNS:
        assert store.show(1)[column].to_list() == model[column].to_list(), column


def test_a_store_from_the_command_line(xpline, tmp_path):
    table.write(rows("a", {64: 100.0}), tmp_path / "a.json")
    at = ["--store", "r.duckdb"]
    assert xpline("results", "add", "a.json", "--note", "first", *at)[0] == 0
    assert "first" in xpline("results", "list", *at)[1]
    assert "100.0" in xpline("results", "show", "1", *at)[1]
    code, out, _ = xpline("results", "query", "SELECT size FROM results", "--csv", *at)
    assert (code, out) == (0, "size\n64\n")
    for arguments, message in [
        (["show", "7"], "results show 7: no such table"),
        (["query", "SELECT sofa"], "sofa"),
        (["query", "DELETE FROM results"], "read-only"),
        (["query", "SELECT 1 AS a, 2 AS a"], "two columns have the same name"),
        (["add", "none.csv"], "none.csv: cannot be read"),
    ]:
        code, out, err = xpline("results", *arguments, *at)
        assert (code, out) == (2, "") and message in err
    assert xpline("results", "list", "--store", "none.duckdb")[0] == 2
    assert Store(tmp_path / "r.duckdb").query("SELECT * FROM results").height == 1


def test_a_file_that_is_no_store_is_left_alone(tmp_path):
    path = tmp_path / "r.duckdb"
    path.write_text("not a database")
    with pytest.raises(XplineError, match=r"r\.duckdb"):
        Store(path).runs()
    assert path.read_text() == "not a database"


def test_tables_read_back_with_their_types(tmp_path):
    written = rows("a", {64: 100.0})
    for suffix in (".parquet", ".csv", ".json"):
        table.write(written, tmp_path / f"t{suffix}")
        back = read(tmp_path / f"t{suffix}")
        assert back.schema == written.schema and back.rows() == written.rows()
