"""The published claims and figures, run again on the model: one call, one folder, one page.

outcome = reproduce("build/reproduce", dataset="OptaneStudy")
print(outcome.summary)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from xpline import table
from xpline.cases import NAMES, Case, Platforms, Row, case, run
from xpline.claims import Judged, judge, read_claims
from xpline.figures import ERROR_LIMIT, Figure, Measurements, draw_all, render
from xpline.files import make_folder, replace_file
from xpline.platform import Entry
from xpline.report import page
from xpline.sweeps import Results, all_cases


@dataclass(frozen=True)
class Reproduction:
    """What came out: each claim with the model's value, the figures, and the page that shows them."""

    claims: list[Judged]
    figures: list[Figure]
    index: Path

    @property
    def summary(self) -> str:
        """How many of the claims that count hold, and how many figures are as near as they should be."""
        return summary(self.claims, self.figures)


def summary(claims: list[Judged], figures: list[Figure]) -> str:
    """How many of the claims that count hold, and how many of the figures with measured points are near, in words."""
    counted = [one for one in claims if one.status in ("holds", "fails")]
    text = f"{sum(one.status == 'holds' for one in counted)} of {len(counted)} covered claims hold"
    measured = [figure for figure in figures if figure.error is not None]
    if measured:
        near = sum(not figure.is_off for figure in measured)
        text += f"; {near} of {len(measured)} figures have a median error of at most {ERROR_LIMIT:.0%}"
    return text


def reproduce(
    out: str | Path,
    *,
    dataset: str | Path | None = None,
    internals: str | Path | None = None,
    platforms: Platforms | None = None,
    jobs: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Reproduction:
    """Run what the claims and figures need, judge, draw, and write ``index.html`` and its files to ``out``.

    With ``dataset`` the measured points are drawn in the figures, with ``internals`` those of the DIMM's inside. Every
    file is made before the first is put in place, and each is put in place whole. ``on_progress`` is told how many
    points are done, of how many.
    """
    out = Path(out)
    measured = Measurements(dataset, internals)
    platforms = platforms or Platforms()
    make_folder(out)
    rows = _run(all_cases(), platforms, jobs, on_progress)
    results = Results(rows, platforms)
    claims = judge(read_claims(), results)
    figures = draw_all(results, measured)
    files = {"index.html": page(claims, figures, summary(claims, figures), _platform_entries(platforms), bool(dataset))}
    for figure in figures:
        files |= render(figure)
    files["claims.csv"] = _claims_csv(claims)
    files["points.csv"] = table.from_rows(rows.values()).write_csv().encode()
    for name, content in files.items():
        replace_file(out / name, content)
    return Reproduction(claims, figures, out / "index.html")


def _run(
    cases: list[Case], platforms: Platforms, jobs: int | None, on_progress: Callable[[int, int], None] | None
) -> dict[Case, Row]:
    finished = 0

    def done(case: Case, row: Row) -> None:
        nonlocal finished
        finished += 1
        if on_progress:
            on_progress(finished, len(cases))

    return run(cases, platforms, jobs, done)


def _platform_entries(platforms: Platforms) -> dict[str, list[Entry]]:
    """The values of each platform, with their sources."""
    return {name: platforms.of(case(name, {})).show() for name in NAMES}


def _claims_csv(claims: list[Judged]) -> bytes:
    columns = ["id", "source", "system", "claim", "published", "model", "error", "status", "detail"]
    rows = [
        (c.claim.id, c.claim.source, c.claim.system, c.claim.claim, c.claim.published, c.model, c.error, c.status,
         c.detail)
        for c in claims
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=columns, orient="row").write_csv().encode()
