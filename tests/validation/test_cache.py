"""The file of finished points: whatever an interruption leaves of it, what is whole is found again."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xpline.cases import Platforms, case
from xpline.errors import XplineError
from xpline.validate.cache import Cache

CASES = [case("dram", {"experiment": "random", "op": "load", "size": 64, "threads": n}) for n in range(1, 7)]
ROWS = [
    {"bandwidth_mib_s": 1000 / 3 * n, "ewr": None if n % 2 else n / 7, "imc_written_bytes": 64 * n} for n in range(1, 7)
]
PLATFORMS = Platforms()


def fill(path, cases=CASES):
    with Cache(path, PLATFORMS) as cache:
        for one, row in zip(cases, ROWS, strict=False):
            cache.add(one, row | {"time_ns": 1.0})


@given(lost=st.integers(min_value=0, max_value=2000), garbage=st.binary(max_size=40))
def test_whole_lines_survive_any_end(lost, garbage):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p.csv.cache"
        fill(path)
        whole = path.read_bytes()
        kept = whole[: max(0, len(whole) - lost)]
        path.write_bytes(kept + garbage.replace(b"\n", b""))
        with Cache(path, PLATFORMS) as cache:
            found = [cache.get(one) for one in CASES]
        complete = max(0, kept.count(b"\n") - 1)
        assert found == ROWS[:complete] + [None] * (len(CASES) - complete)
        fill(path, CASES[complete:])
        with Cache(path, PLATFORMS) as cache:
            assert [cache.get(one) is not None for one in CASES] == [True] * len(CASES)


def test_without_a_path_rows_are_kept_in_memory_alone(tmp_path):
    with Cache(None, PLATFORMS) as cache:
        cache.add(CASES[0], ROWS[0])
        assert cache.get(CASES[0]) == ROWS[0]
        assert cache.get(CASES[1]) is None
    assert list(tmp_path.iterdir()) == []


def test_two_runs_never_share_a_file(tmp_path):
    path = tmp_path / "p.csv.cache"
    fill(path)
    with Cache(path, PLATFORMS), pytest.raises(XplineError, match="another run is using it"), Cache(path, PLATFORMS):
        pass
    with Cache(path, PLATFORMS) as cache:
        assert cache.get(CASES[-1]) == ROWS[-1]
