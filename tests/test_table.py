"""The table of results, and files of it."""

import polars as pl
import pytest

from xpline import table
from xpline.errors import XplineError


@pytest.fixture
def results():
    return table.from_rows([{"platform": "dram", "size": 64, "ewr": 0.25, "settled": True}, {"platform": "optane"}])


def test_every_table_has_every_column(results):
    assert results.schema == pl.Schema(table.COLUMNS)
    assert table.from_rows([]).schema == results.schema


@pytest.mark.parametrize(
    ("suffix", "read"), [(".parquet", pl.read_parquet), (".csv", pl.read_csv), (".json", pl.read_json)]
)
def test_a_written_table_reads_back(results, tmp_path, suffix, read):
    path = tmp_path / f"results{suffix}"
    table.write(results, path)
    assert read(path).select("platform", "size", "ewr", "settled").rows() == [
        ("dram", 64, 0.25, True),
        ("optane", None, None, None),
    ]
    assert list(tmp_path.iterdir()) == [path]


def test_a_table_replaces_the_one_before(results, tmp_path):
    path = tmp_path / "results.csv"
    path.write_text("old")
    table.write(results, path)
    assert pl.read_csv(path).height == 2


def test_a_failed_write_leaves_the_file_as_it_was(results, tmp_path, monkeypatch):
    def fail(path, content):
        path.touch()
        raise OSError(28, "No space left on device")

    path = tmp_path / "results.csv"
    path.write_text("old")
    monkeypatch.setattr("pathlib.Path.write_bytes", fail)
    with pytest.raises(XplineError, match=r"results\.csv: cannot be written: No space left on device"):
        table.write(results, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_places_that_cannot_be_written_to(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file").touch()
    for path, message in [
        ("results", "the suffix says how to write a table; use .parquet, .csv, .json"),
        ("results.xlsx", "the suffix says how to write a table; use .parquet, .csv, .json"),
        ("folder.csv", "is a folder; give the name of a file"),
        ("nowhere/results.csv", "the folder .*nowhere does not exist; create it first"),
        ("file/results.csv", "the folder .*file does not exist; create it first"),
    ]:
        with pytest.raises(XplineError, match=message):
            table.check_writable(tmp_path / path)


def test_a_folder_of_the_kernel_cannot_be_written_to(results):
    with pytest.raises(XplineError, match="no permission to write in /proc"):
        table.check_writable(table.Path("/proc/results.csv"))
