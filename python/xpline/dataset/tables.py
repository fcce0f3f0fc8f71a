"""Reading the three tables of the sweep, strictly in what is needed and forgiving in everything else."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from xpline.errors import XplineError

#: The columns that set an experiment, by table: rows that agree in all of them are repeats of one configuration.
CONFIGURATION: dict[str, list[str]] = {
    "bandwidth": [
        "task_type", "media", "interleaving", "local", "operation", "access_size", "stride_size", "threads", "avgpower",
    ],
    "flush": [
        "task_type", "media", "interleaving", "op", "access_size", "clwb_size", "fence_size", "threads", "avgpower",
    ],
    "alignment": ["task_type", "media", "alloc_type", "operation", "access_size", "threads", "avgpower"],
}  # fmt: skip

#: Read as well: the key and the value of a row, and what tells a bad series.
_ALSO = {"bandwidth": ["date", "machine"], "flush": [], "alignment": []}

#: Read where the file has them: EWR, and the version of the benchmark.
_OPTIONAL = ["ewr", "version"]

#: Table name -> one row a measurement; every column is text as it stands in the file, plus ``line`` (from 1).
Tables = dict[str, pl.DataFrame]


def read_tables(directory: str | Path) -> Tables:
    """Read the tables of the sweep that exist in ``directory``, in the order of the file.

    Raises XplineError when the folder does not exist, holds none of the tables, or a table lacks a column.
    """
    directory = Path(directory)
    if not directory.is_dir():
        problem = "is not a folder" if directory.exists() else "does not exist"
        raise XplineError(
            f"data set {directory}: {problem}; give the folder that holds data/bandwidth.csv "
            "(a clone of github.com/NVSL/OptaneStudy, or a part of it)"
        )
    tables = {
        name: _read(directory / "data" / f"{name}.csv", name)
        for name in CONFIGURATION
        if (directory / "data" / f"{name}.csv").is_file()
    }
    if not tables:
        wanted = ", ".join(f"data/{name}.csv" for name in CONFIGURATION)
        raise XplineError(f"data set {directory}: none of {wanted} is in this folder; give the folder that holds data/")
    return tables


def read_csv(path: Path, required: list[str]) -> pl.DataFrame:
    """Read a CSV file with every cell as text (an empty cell is null), checking that the required columns exist."""
    try:
        frame = pl.read_csv(path, infer_schema=False, truncate_ragged_lines=True)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise XplineError(f"{path}: cannot be read as CSV: {error}") from error
    missing = [column for column in required if column not in frame.columns]
    if missing:
        raise XplineError(
            f"{path}: column {', '.join(missing)} is missing; found columns: "
            f"{', '.join(c for c in frame.columns if c.strip())}"
        )
    return frame


def _read(path: Path, name: str) -> pl.DataFrame:
    columns = ["__key__", "throughput", *CONFIGURATION[name], *_ALSO[name]]
    frame = read_csv(path, columns)
    absent = [pl.lit(None, pl.String).alias(column) for column in _OPTIONAL if column not in frame.columns]
    frame = frame.with_columns(absent).select(*columns, *_OPTIONAL).with_row_index("line", offset=2)
    if frame.height and frame["__key__"][0] == "string":  # the second line of the original names the types
        frame = frame.slice(1)
    if frame["__key__"].null_count():
        line = frame.filter(pl.col("__key__").is_null())["line"][0]
        raise XplineError(f"{path}, line {line}: __key__ is empty; every row of the data set has one")
    for column in ("throughput", "ewr"):
        _numbers(frame, path, column, pl.Float64)
    for column in set(CONFIGURATION[name]) - {"task_type", "media", "operation"}:
        _numbers(frame, path, column, pl.Int64)
    return frame


def _numbers(frame: pl.DataFrame, path: Path, column: str, dtype: type[pl.DataType]) -> None:
    """Check that every cell of the column that is not empty reads as a number of this type."""
    bad = frame.filter(pl.col(column).is_not_null() & pl.col(column).cast(dtype, strict=False).is_null())
    if bad.height:
        kind = "a whole number" if dtype == pl.Int64 else "a number"
        raise XplineError(f"{path}, line {bad['line'][0]}, column {column}: {bad[column][0]!r} is not {kind}")


def select(tables: Tables, conditions: list[str]) -> Tables:
    """The rows that meet every condition ``COLUMN=VALUE[|VALUE...]``; ``file`` is the name of the table.

    A table without the column of a condition has no row that meets it.
    """
    for condition in conditions:
        column, equals, values = condition.partition("=")
        known = {"file"} | {c for table in tables.values() for c in table.columns} - {"line"}
        if not equals or column not in known:
            raise XplineError(
                f"--only {condition}: write COLUMN=VALUE (alternatives as VALUE|VALUE) with a column out of "
                f"{', '.join(sorted(known))}"
            )
        wanted = values.split("|")
        if column == "file":
            tables = {name: table for name, table in tables.items() if name in wanted}
        else:
            tables = {
                name: table.filter(pl.col(column).is_in(wanted))
                for name, table in tables.items()
                if column in table.columns
            }
    if not any(table.height for table in tables.values()):
        raise XplineError(f"--only {','.join(conditions)}: no row of the data set meets this")
    return tables
