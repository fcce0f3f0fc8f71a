"""A store of results: tables of many machines and days in one DuckDB file, to be asked in SQL."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import polars as pl

from xpline import table
from xpline.errors import XplineError

#: Where results are kept unless another file is named.
USUAL = Path("~/.local/share/xpline/results.duckdb")

#: What is kept of each table besides its rows.
_RUNS = "id INTEGER PRIMARY KEY, name VARCHAR, added TIMESTAMP, note VARCHAR"

_READERS = {".parquet": pl.read_parquet, ".csv": pl.read_csv, ".json": pl.read_json}


def read(path: Path) -> pl.DataFrame:
    """A table that ``--out`` wrote: .parquet, .csv or .json, with the columns and types of :mod:`xpline.table`."""
    if path.suffix not in _READERS:
        raise XplineError(f"{path}: the suffix says what it is; expected {', '.join(_READERS)}")
    try:
        options = {"infer_schema_length": None} if path.suffix != ".parquet" else {}
        frame = _READERS[path.suffix](path, **options)
    except (OSError, pl.exceptions.PolarsError, ValueError) as error:
        raise XplineError(f"{path}: cannot be read as a table of results: {error}") from error
    known = table.COLUMNS | table.HOST
    missing = [name for name in ("platform", "experiment") if name not in frame.columns]
    if missing:
        raise XplineError(f"{path}: is no table of results: column {missing[0]} is missing")
    try:
        ours = [pl.col(name).cast(kind) for name, kind in known.items() if name in frame.columns]
        return frame.select(*ours, *(name for name in frame.columns if name not in known))
    except pl.exceptions.PolarsError as error:
        raise XplineError(f"{path}: a column is not of its type: {error}") from error


class Store:
    """Tables of results by number, in a DuckDB file.

    >>> import tempfile, xpline
    >>> folder = Path(tempfile.mkdtemp())
    >>> store = Store(folder / "r.duckdb")
    >>> store.add(xpline.bench.latency("dram", max_requests=20_000), "dram.parquet")
    1
    >>> store.query("SELECT platform, experiment FROM results WHERE run = 1").rows()
    [('dram', 'latency')]
    """

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser()

    def add(self, results: pl.DataFrame, name: str, note: str | None = None) -> int:
        """Keep a table; its number."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._open() as connection, tempfile.TemporaryDirectory() as folder:
            # DuckDB reads Parquet by itself; handing over frames would need another library.
            file = Path(folder) / "new.parquet"
            results.write_parquet(file)
            connection.begin()
            connection.execute(f"CREATE TABLE IF NOT EXISTS runs ({_RUNS})")
            number = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM runs").fetchone()[0]
            now = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
            connection.execute("INSERT INTO runs VALUES (?, ?, ?, ?)", [number, name, now, note])
            source = f"SELECT {number}::INTEGER AS run, * FROM read_parquet(?)"
            empty = f"CREATE TABLE IF NOT EXISTS results AS {source} LIMIT 0"
            connection.execute(empty, [str(file)])
            for column, kind in _columns(connection, source, file):
                connection.execute(f'ALTER TABLE results ADD COLUMN IF NOT EXISTS "{column}" {kind}')
            connection.execute(f"INSERT INTO results BY NAME {source}", [str(file)])
            connection.commit()
        return number

    def runs(self) -> pl.DataFrame:
        """What is kept: number, name, time, rows, platforms and machines of each table."""
        return self.query(
            "SELECT runs.id, runs.name, runs.added, count(*) AS rows, "
            "string_agg(DISTINCT results.platform, ', ' ORDER BY results.platform) AS platforms, "
            "string_agg(DISTINCT results.experiment, ', ' ORDER BY results.experiment) AS experiments, runs.note "
            "FROM runs JOIN results ON results.run = runs.id GROUP BY ALL ORDER BY runs.id"
        )

    def show(self, number: int) -> pl.DataFrame:
        """One table, with the columns in which it has something."""
        rows = self.query(f"SELECT * EXCLUDE (run) FROM results WHERE run = {number:d}")
        if not rows.height:
            raise XplineError(f"results show {number}: no such table in {self.path}; xpline results list tells which")
        return rows

    def query(self, sql: str) -> pl.DataFrame:
        """What a query gives; it cannot change the store. Tables: ``results``, with ``run``, and ``runs``."""
        if not self.path.is_file():
            raise XplineError(f"{self.path}: no results are kept yet; xpline results add FILE begins")
        with self._open(read_only=True) as connection:
            found = connection.execute(sql)
            names = [column[0] for column in found.description or []]
            rows = found.fetchall()
        if len(set(names)) < len(names):
            raise XplineError("results query: two columns have the same name; give them others with AS")
        return pl.DataFrame(rows, schema=names, orient="row", infer_schema_length=None)

    @contextmanager
    def _open(self, read_only: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
        """The file, open; what DuckDB does not like, in words."""
        try:
            with duckdb.connect(str(self.path), read_only=read_only) as connection:
                yield connection
        except duckdb.Error as error:
            raise XplineError(f"{self.path}: {str(error).strip()}") from error


def _columns(connection: duckdb.DuckDBPyConnection, source: str, file: Path) -> list[tuple[str, str]]:
    """Names and types of what a query gives."""
    return [(row[0], row[1]) for row in connection.execute(f"DESCRIBE {source}", [str(file)]).fetchall()]


def keep(path: Path, store: Store, note: str | None = None) -> int:
    """Add a file of results to a store."""
    return store.add(read(path), path.name, note)
