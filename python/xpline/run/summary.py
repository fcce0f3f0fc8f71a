"""A run in the terminal: ratios first, then traffic, time, lines and findings."""

from __future__ import annotations

from collections.abc import Sequence

from xpline.advice.rule import Finding, duration, size
from xpline.errors import XplineError
from xpline.run.annotated import annotated
from xpline.run.outcome import Outcome, Run

#: Lines that the summary names.
MOST_LINES = 8

#: Lines that it names for what they write to the media, if they cost little time.
MOST_WRITERS = 2

#: Call sites that it names of a line.
MOST_CALLERS = 3


def summary(run: Run, findings: Sequence[Finding], advised: bool = True) -> str:
    """What people read after a run."""
    notes = [f"note: {note}" for note in run.notes]
    if not run.touched:
        where = "any memory" if run.heap else "the files that --pmem names"
        return "\n".join(["", f"xpline: the program did not touch {where}: there is nothing to report", *notes])
    parts = ["", *_ratios(run), "", *_table(run), "", *_lines(run), "", *_advice(findings, advised), *notes]
    return "\n".join(parts)


def _ratios(run: Run) -> list[str]:
    ratios = run.ratios()
    if not ratios:
        return [f"on {run.main.platform.name}: {duration(run.main.time_ns)} of modelled time"]
    return [f"{ratio:.2f} times the time on {name}" for name, ratio in ratios.items()]


def _table(run: Run) -> list[str]:
    def ratio(value: float | None) -> str:
        return "–" if value is None else f"{value:.2f}"

    def causes(outcome: Outcome) -> list[str]:
        return [f"{time / outcome.busy_ns:.1%}" for time in outcome.causes_ns.values()]

    names = [
        "",
        "modelled time",
        "stored",
        "controllers wrote",
        "media wrote",
        "EWR",
        "controllers read",
        "media read",
        "ERR",
    ]
    names += ["in memory", *(f"  {cause}" for cause in run.main.causes_ns)]
    columns = [names]
    for outcome in run.outcomes:
        counters = outcome.counters
        columns.append(
            [
                outcome.platform.name,
                duration(outcome.time_ns),
                size(counters["bytes_stored"]),
                size(counters["imc_written_bytes"]),
                size(counters["media_written_bytes"]),
                ratio(outcome.ewr),
                size(counters["imc_read_bytes"]),
                size(counters["media_read_bytes"]),
                ratio(outcome.err),
                f"{outcome.memory_ns / outcome.busy_ns:.1%}" if outcome.busy_ns else "–",
                *causes(outcome),
            ]
        )
    widths = [max(map(len, column)) for column in columns]
    rows = zip(*columns, strict=True)
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        ).rstrip()
        for row in rows
    ]


def _lines(run: Run) -> list[str]:
    written = run.main.counters["media_written_bytes"]
    costly = [line for line in run.lines if line.memory_ns >= 0.005 * run.main.memory_ns][:MOST_LINES]
    writers = sorted(run.lines, key=lambda line: -line.facts["media_written_bytes"])[:MOST_WRITERS]
    shown = [
        *costly,
        *(line for line in writers if line not in costly and line.facts["media_written_bytes"] > 0.05 * written),
    ]
    if not shown:
        return ["no line costs time in memory"]
    whole = run.main.memory_ns or 1.0
    head = ["in memory", "stored", "to media", "flushes", "fences", "where"]
    rows = [
        [
            f"{line.memory_ns / whole:.1%}",
            size(line.stored_bytes),
            size(line.facts["media_written_bytes"]),
            f"{line.facts['flushes']:,}",
            f"{line.facts['fences']:,}",
            line.where,
        ]
        for line in shown
    ]
    widths = [max(len(row[place]) for row in [head, *rows]) for place in range(5)]
    text = []
    for line, row in zip([None, *shown], [head, *rows], strict=True):
        cells = [*(cell.rjust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]
        text.append("  ".join(cells))
        called = line.called_from()[:MOST_CALLERS] if line else []
        text += [f"{'':{sum(widths) + 10}}  {share:4.0%} called from {where}" for where, share in called]
    return text


def _advice(findings: Sequence[Finding], advised: bool) -> list[str]:
    if not advised:
        return []
    if not findings:
        return ["no rule is broken"]
    lines = []
    for finding in findings:
        lines += [
            f"{finding.rule.name}: {finding.where}",
            f"  {finding.candidate.evidence}",
            f"  change: {finding.candidate.change}",
            *([f"  checked: {finding.told}"] if finding.told else []),
            *(f"  {note}" for note in finding.notes),
        ]
    return lines


def annotation(run: Run, name: str) -> str:
    """The source file whose path ends in ``name``, with the cost of each line."""
    files = sorted({line.file for line in run.lines if line.file and line.file.endswith(name)}) if run.outcomes else []
    if not files:
        raise XplineError(f"--annotate {name}: no line of such a file cost anything; the report names those that did")
    text = []
    for file in files:
        rows = annotated(run, file)
        if not rows:
            raise XplineError(f"--annotate {name}: {file} cannot be read")
        text.append(f"{'memory':>10} {'media':>10}  {file}")
        for number, source, cost in rows:
            costs = (duration(cost.memory_ns), size(cost.facts["media_written_bytes"])) if cost else ("", "")
            text.append(f"{costs[0]:>10} {costs[1]:>10}  {number:>5} {source}" if number else f"{'':21}    ...")
    return "\n".join(text)
