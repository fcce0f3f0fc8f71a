"""Rules on op streams written by hand: each is broken by one stream and not by the other, whatever the tracer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from xpline import Platform, XplineError, _native
from xpline.advice import RULES, Finding, advise
from xpline.report.run_files import write_run
from xpline.run import Run, rerun, run_recorded
from xpline.run.summary import annotation, summary

KIB, MIB = 2**10, 2**20

#: thread, kind, address, size, instructions, site
Op = tuple[int, str, int, int, int, int]

#: Sites of the streams: what stores, what flushes, what fences, what loads.
STORE, FLUSH, FENCE, LOAD, OTHER = range(5)

TOTALS = {"files": [], "pages": [], "instructions": 1, "threads": 1, "processes": 1}

SITES = [
    {
        "module": "/bin/app",
        "offset": 16 * site,
        "call": None,
        "frames": [{"function": name, "file": None, "line": None}],
    }
    for site, name in enumerate(["store", "flush", "fence", "load", "other"])
]


def store(address: int, size: int, thread: int = 0, kind: str = "store", site: int = STORE) -> Iterator[Op]:
    for at in range(address, address + size, 64):
        yield (thread, kind, at, min(64, size), 4, site)


def flush(address: int, size: int = 64, thread: int = 0, kind: str = "clwb") -> Iterator[Op]:
    for at in range(address, address + size, 64):
        yield (thread, kind, at, 1, 2, FLUSH)


def fence(thread: int = 0, site: int = FENCE) -> Iterator[Op]:
    yield (thread, "sfence", 0, 0, 2, site)


def records(places: Iterator[int] | range, size: int, kind: str = "clwb") -> Iterator[Op]:
    """Stores of so many bytes at each place, flushed and fenced."""
    for place in places:
        yield from store(place, size)
        yield from flush(place, size, kind=kind)
        yield from fence()


def past(places: Iterator[int] | range, size: int, thread: int = 0) -> Iterator[Op]:
    """The same past the caches."""
    for place in places:
        yield from store(place, size, thread, "ntstore")
        yield from fence(thread)


def random_places(count: int, span: int) -> Iterator[int]:
    number = 1
    for _ in range(count):
        number = number * 6364136223846793005 % 2**64 + 1442695040888963407
        yield (number >> 20) % (span // 256) * 256


def turns(*threads: Iterator[Op]) -> Iterator[Op]:
    """Several threads, each a few ops at a time."""
    left = [iter(thread) for thread in threads]
    while left:
        for thread in list(left):
            part = [op for op, _ in zip(thread, range(256), strict=False)]
            if not part:
                left.remove(thread)
            yield from part


def small_ntstores() -> Iterator[Op]:
    for at in range(0, MIB, 64):
        yield (0, "load", at, 8, 4, LOAD)
        yield from past(range(at, at + 64, 64), 64)


def small_stores() -> Iterator[Op]:
    for at in range(0, MIB, 64):
        yield (0, "load", at, 8, 4, LOAD)
        yield from records(range(at, at + 64, 64), 64)


def twice() -> Iterator[Op]:
    for at in range(0, MIB, 64):
        yield from records(range(at, at + 64, 64), 64)
        yield from flush(at)
        yield from fence()


def fenced_before() -> Iterator[Op]:
    for at in range(0, MIB, 64):
        yield from fence(site=OTHER)
        yield from records(range(at, at + 64, 64), 64)


def changed_lines(flushed: int) -> Iterator[Op]:
    for _ in range(128):
        for at in range(0, 8 * KIB, 256):
            yield from store(at, 64)
            yield from flush(at, flushed)
            yield from fence()


def counted(persist: bool) -> Iterator[Op]:
    for at in range(64, 256 * KIB, 64):
        yield from records(range(at, at + 64, 64), 64)
    yield from store(0, 8, site=OTHER)
    if persist:
        yield from flush(0)
        yield from fence()


def published(flush_first: bool) -> Iterator[Op]:
    """Records, and for each a mark that it is there."""
    for at in range(0, 256 * KIB, 64):
        marked = [*store(MIB + at, 64, site=OTHER), *flush(MIB + at), *fence()]
        written = [*flush(at), *fence()]
        yield from store(at, 64)
        yield from [*written, *marked] if flush_first else [*marked, *written]


def forgotten(often: int) -> Iterator[Op]:
    """Records of which one in so many is flushed after its mark only."""
    for number, at in enumerate(range(0, 256 * KIB, 64)):
        marked = [*store(MIB + at, 64, site=OTHER), *flush(MIB + at), *fence()]
        written = [*flush(at), *fence()]
        yield from store(at, 64)
        yield from [*marked, *written] if number % often == 1 else [*written, *marked]


def batches(size: int) -> Iterator[Op]:
    """Room is made for each record, and records are flushed together."""
    for at in range(0, 256 * KIB, size * 64):
        for place in range(at, at + size * 64, 64):
            yield from store(MIB + place, 64, site=OTHER)
            yield from flush(MIB + place)
            yield from fence()
            yield from store(place, 64)
        yield from flush(at, size * 64)
        yield from fence()


def hot(stagger: int) -> Iterator[Op]:
    def walk(thread: int) -> Iterator[Op]:
        for page in range(1024):
            place = (1025 * thread + page) * 4 * KIB + page * stagger % 16 * 256
            yield from store(place, 256, thread, "ntstore")
        yield from fence(thread)

    return turns(*(walk(thread) for thread in range(4)))


def pages(step: int) -> Iterator[Op]:
    return turns(*(past(range(thread * step, 512 * step, 4 * step), 4 * KIB, thread) for thread in range(4)))


#: Rule, platform, a stream that breaks it and one that does not.
CASES = {
    "small-random-stores": ("optane", lambda: records(random_places(8000, 32 * MIB), 64),
                            lambda: records(range(0, 8000 * 64, 64), 64)),
    "large-cached-writes": ("optane", lambda: records(range(0, 2 * MIB, 4 * KIB), 4 * KIB),
                            lambda: past(range(0, 2 * MIB, 4 * KIB), 4 * KIB)),
    "small-ntstores": ("optane", small_ntstores, small_stores),
    "cache-eviction": ("optane", lambda: store(0, 48 * MIB), lambda: records(range(0, 40 * MIB, 256), 256)),
    "clflush": ("optane", lambda: records(range(0, 768 * KIB, 192), 192, "clflush"),
                lambda: records(range(0, 768 * KIB, 192), 192)),
    "double-flush": ("optane", twice, lambda: records(range(0, MIB, 64), 64)),
    "clean-flush": ("optane", lambda: changed_lines(256), lambda: changed_lines(64)),
    "empty-fence": ("optane", fenced_before, lambda: records(range(0, MIB, 64), 64)),
    "missing-persist": ("optane", lambda: counted(False), lambda: counted(True)),
    "persist-order": ("optane", lambda: published(False), lambda: published(True)),
    "late-flush": ("optane", lambda: [*store(0, 48 * MIB), *flush(0, 48 * MIB)],
                   lambda: records(range(0, 8 * MIB, 256), 256)),
    "crowded-dimm": ("optane-ni", lambda: turns(*(past(range(n * MIB, n * MIB + MIB // 4, 4 * KIB), 4 * KIB, n)
                                                  for n in range(12))),
                     lambda: turns(*(past(range(n * MIB, n * MIB + MIB // 4, 4 * KIB), 4 * KIB, n) for n in range(2)))),
    "uneven-dimms": ("optane", lambda: pages(24 * KIB), lambda: pages(4 * KIB)),
    "aligned-hot-spot": ("optane", lambda: hot(0), lambda: hot(7)),
}  # fmt: skip


def write(path: Path, ops: Iterator[Op] | list[Op]) -> Path:
    about = {"command": ["app"], "sites": SITES, "totals": TOTALS, "cut": False}
    _native.write_recording(str(path), json.dumps(about), list(ops))
    return path


def findings_of(path: Path, on: str) -> tuple[Run, list[Finding]]:
    run = run_recorded(path, on)
    return run, advise(run)


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_is_seen_broken_and_kept(rule: str, tmp_path: Path) -> None:
    on, bad, good = CASES[rule]
    _, findings = findings_of(write(tmp_path / "bad", bad()), on)
    assert [finding.rule.name for finding in findings] == [rule], [finding.to_dict() for finding in findings]
    assert findings[0].candidate.evidence and findings[0].candidate.change
    assert (findings[0].gain is None) == findings[0].rule.correctness
    _, findings = findings_of(write(tmp_path / "good", good()), on)
    assert not findings, [finding.to_dict() for finding in findings]


def test_an_exception_from_the_order_is_seen(tmp_path: Path) -> None:
    for often, expected in ((100, ["persist-order"]), (3, [])):
        _, findings = findings_of(write(tmp_path / "streams", forgotten(often)), "optane")
        assert [finding.rule.name for finding in findings] == expected, often
        assert all("41 of 4,096 lines" in finding.candidate.evidence for finding in findings)


@pytest.mark.parametrize("size", [1, 2, 4, 16, 64])
def test_batches_are_no_disorder(size: int, tmp_path: Path) -> None:
    _, findings = findings_of(write(tmp_path / "streams", batches(size)), "optane")
    assert not [finding for finding in findings if finding.rule.correctness]


def test_nothing_is_lost_where_the_caches_are_persistent(tmp_path: Path) -> None:
    path = write(tmp_path / "bad", counted(False))
    run = run_recorded(path, Platform("optane", set={"core.eadr": "true"}))
    assert not [finding for finding in advise(run) if finding.rule.correctness]


def test_every_rule_says_where_it_comes_from() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES) == 15
    assert all("FAST'20" in rule.source and rule.why for rule in RULES)
    assert set(CASES) <= {rule.name for rule in RULES}


def test_a_recording_runs_the_same_again_and_on_other_platforms(tmp_path: Path) -> None:
    path = write(tmp_path / "log", ((0, "load", place, 8, 4, LOAD) for place in random_places(20_000, 32 * MIB)))
    first, second = run_recorded(path), run_recorded(path, "optane", ["dram"])
    assert first.main.data == second.main.data
    assert second.ratios()["dram"] > 1.1
    again = rerun(first)
    assert again is not None and again.data == first.main.data


def test_the_report_is_whole(tmp_path: Path) -> None:
    run, findings = findings_of(write(tmp_path / "app", records(random_places(4000, 32 * MIB), 64)), "optane")
    page = write_run(run, findings, tmp_path / "out")
    assert "Small stores at random places" in page.read_text()
    log = json.loads((tmp_path / "out" / "findings.sarif").read_text())
    assert log["version"] == "2.1.0" and log["runs"][0]["results"][0]["ruleId"] == "small-random-stores"
    result = json.loads((tmp_path / "out" / "run.json").read_text())
    assert result["findings"][0]["saved_media_bytes"] > 0
    assert result["lines"][0]["function"] in ("store", "fence")
    stacks = (tmp_path / "out" / "stacks.folded").read_text().splitlines()
    assert stacks and all(line.rpartition(" ")[2].isdigit() and line.startswith("app;") for line in stacks)
    text = summary(run, findings)
    assert "small-random-stores: store (app)" in text and "times as fast" in text


def test_a_source_file_is_shown_with_its_costs(tmp_path: Path) -> None:
    source = tmp_path / "app.c"
    source.write_text("\n".join(f"line {number}" for number in range(1, 30)))
    sites = [
        {**site, "frames": [{"function": "f", "file": str(source), "line": 10 + number}]}
        for number, site in enumerate(SITES)
    ]
    about = {"command": ["app"], "sites": sites, "totals": TOTALS, "cut": False}
    _native.write_recording(str(tmp_path / "streams"), json.dumps(about), list(records(range(0, MIB, 64), 64)))
    run = run_recorded(tmp_path / "streams")
    text = annotation(run, "app.c")
    assert "10 line 10" in text and "29 line 29" not in text
    with pytest.raises(XplineError, match=r"--annotate other\.c"):
        annotation(run, "other.c")


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "streams", records(range(0, MIB, 64), 64))
    whole = path.read_bytes()
    for content in (
        b"",
        b"hello",
        whole[:16],
        whole[: len(whole) // 2],
        whole[:-1],
        whole[:40] + b"\0" * 100 + whole[140:],
    ):
        path.write_bytes(content)
        with pytest.raises(XplineError, match="streams"):
            run_recorded(path)
    with pytest.raises(XplineError, match="No such file"):
        run_recorded(tmp_path / "none")
