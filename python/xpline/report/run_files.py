"""The files of a run's report: a page, its figures, JSON, SARIF, folded stacks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from xpline import __version__
from xpline.advice import RULES, Finding
from xpline.advice.rule import duration, size
from xpline.figures import render
from xpline.figures.run import draw_run
from xpline.files import make_folder, replace_file
from xpline.report.page import render_page
from xpline.run.annotated import annotated
from xpline.run.outcome import Run

#: Lines that the page lists, and lines whose source it shows.
MOST_LINES, MOST_SOURCES = 60, 12


def write_run(run: Run, findings: Sequence[Finding], out: Path) -> Path:
    """Write ``index.html``, ``run.json``, ``findings.sarif``, ``stacks.folded`` and the figures to the folder
    ``out``; the page.

    Every file is made before the first is put in place, and each is put in place whole.
    """
    figures = draw_run(run) if run.touched else []
    files = {
        "run.json": json_of(run, findings),
        "findings.sarif": sarif_of(findings),
        "stacks.folded": folded_of(run),
        "index.html": render_page(
            "run.html",
            figures,
            run=run,
            findings=findings,
            lines=run.lines[:MOST_LINES] if run.outcomes else [],
            more=max(0, len(run.lines) - MOST_LINES) if run.outcomes else 0,
            sources=_sources(run, findings) if run.outcomes else [],
            size=size,
            duration=duration,
        ),
    }
    for figure in figures:
        files |= render(figure)
    make_folder(out)
    for name, content in files.items():
        replace_file(out / name, content)
    return out / "index.html"


def json_of(run: Run, findings: Sequence[Finding]) -> bytes:
    """The whole result."""
    lines = [
        {
            "where": line.where,
            "function": line.function,
            "file": line.file,
            "line": line.line,
            "module": line.module,
            "call": line.call,
            "target": line.target,
            "inlined": line.inlined,
            "sites": line.sites,
            "callers": [{"stack": caller.frames, **_numbers(caller.facts)} for caller in line.callers],
            "memory_ns": line.memory_ns,
            **line.facts,
        }
        for line in (run.lines if run.outcomes else [])
    ]
    value = {
        "xpline": __version__,
        "command": list(run.command),
        "ended": dict(run.ended),
        "notes": list(run.notes),
        "totals": dict(run.totals),
        "outcomes": [
            {
                **{name: value for name, value in outcome.data.items() if name != "sites"},
                "overrides": outcome.platform.overrides,
            }
            for outcome in run.outcomes
        ],
        "lines": lines,
        "findings": [finding.to_dict() for finding in findings],
    }
    return json.dumps(value, indent=1).encode()


def _numbers(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What a call site did, without what is known by place in memory."""
    return {name: value for name, value in facts.items() if name == "time_ps" or not isinstance(value, list)}


def sarif_of(findings: Sequence[Finding]) -> bytes:
    """Findings as SARIF 2.1.0, so that editors and code review show them in place."""
    rules = [
        {
            "id": rule.name,
            "shortDescription": {"text": rule.title},
            "fullDescription": {"text": f"{rule.why} ({rule.source})"},
            "defaultConfiguration": {"level": "error" if rule.correctness else "warning"},
        }
        for rule in RULES
    ]
    names = [rule.name for rule in RULES]
    results = []
    for finding in findings:
        result: dict[str, Any] = {
            "ruleId": finding.rule.name,
            "ruleIndex": names.index(finding.rule.name),
            "level": "error" if finding.rule.correctness else "warning",
            "message": {"text": _sentence(finding)},
            "properties": {"mediaBytes": finding.candidate.media_bytes, "timeNs": finding.candidate.time_ns},
        }
        places = [_location(*line.source) for line in finding.candidate.lines if line.source]
        if places:
            result["locations"], result["relatedLocations"] = places[:1], places[1:]
        elif finding.line:
            logical = {"fullyQualifiedName": finding.line.where}
            result["locations"] = [{"logicalLocations": [logical]}]
        results.append(result)
    driver = {"name": "xpline", "version": __version__, "rules": rules}
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return json.dumps(log, indent=1).encode()


def _sentence(finding: Finding) -> str:
    checked = f" Checked: {finding.told}." if finding.told else ""
    return f"{finding.rule.title}: {finding.candidate.evidence}. Change: {finding.candidate.change}.{checked}"


def _location(file: str, line: int) -> dict[str, Any]:
    artifact = {"uri": PurePath(file).as_uri() if PurePath(file).is_absolute() else file}
    return {"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": line}}}


def folded_of(run: Run) -> bytes:
    """Time in nanoseconds by functions and line, a stack a line, for flame-graph tools."""
    if not run.outcomes:
        return b""
    stacks: dict[str, int] = {}
    for line in run.lines:
        # A stack begins with its outermost function; without callers with the module that the code is in.
        paths = [
            ([function or "?" for function, _, _ in caller.frames] + line.stack[bool(line.module) :], caller.time_ns)
            for caller in line.callers
        ]
        rest = line.time_ns - sum(time for _, time in paths)
        for frames, time in [*paths, (line.stack, rest)]:
            stack = ";".join(frame.replace(";", ":") for frame in frames)
            stacks[stack] = stacks.get(stack, 0) + round(time)
    return "".join(f"{stack} {time}\n" for stack, time in stacks.items() if time).encode()


def _sources(run: Run, findings: Sequence[Finding]) -> list[Mapping[str, Any]]:
    named = [line.file for finding in findings for line in finding.candidate.lines] + [line.file for line in run.lines]
    files = list(dict.fromkeys(file for file in named if file))[:MOST_SOURCES]
    sources = ({"file": file, "rows": annotated(run, file)} for file in files)
    return [source for source in sources if source["rows"]]
