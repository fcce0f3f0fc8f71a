"""Programs under the tracer: the rules' programs in C, and what may go wrong. Skipped where there is no tracer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from xpline.advice import RULES, advise
from xpline.report.run_files import folded_of
from xpline.run import rerun, run_program, run_recorded
from xpline.run.summary import summary

PROGRAMS = Path(__file__).parent / "rules"

Done = subprocess.CompletedProcess[str]

#: Rules about few DIMMs, or about the other socket, run on a platform that has them.
PLATFORMS = {"aligned-hot-spot": "optane-ni", "crowded-dimm": "optane-ni", "remote-mixed": "optane-remote"}


needs_tracer = pytest.mark.usefixtures("tracer")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rules' programs, compiled."""
    folder = tmp_path_factory.mktemp("rules")
    for source in PROGRAMS.glob("*.c"):
        command = ["cc", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", source, "-o", folder / source.stem]
        subprocess.run(command, check=True)
    return folder


def test_memory_mode_keeps_nothing_and_says_so(xpline: Callable[..., tuple[int, str, str]]) -> None:
    """Before anything runs: here there is not even a recording."""
    code, _, err = xpline("run", "--on", "memory-mode", "--replay", "none.trace")
    assert code == 2 and "memory-mode is volatile" in err
    assert "volatile" not in xpline("run", "--on", "optane", "--replay", "none.trace")[2]


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A small program in C: what to do is its first word."""
    source = tmp_path / "app.c"
    source.write_text(APP)
    subprocess.run(["cc", "-O1", "-g", "-pthread", source, "-o", tmp_path / "app"], check=True)
    return tmp_path / "app"


APP = r"""
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static char *memory;

static void append(int lines) {
    for (int line = 0; line < lines; line++) {
        ((volatile long *)memory)[line * 8] = line;
        __asm__ volatile("clwb %0\n\tsfence" : "+m"(memory[line * 64]));
    }
}

static void *work(void *unused) { append(4); return unused; }

int main(int count, char **words) {
    int file = open(words[2], O_RDWR | O_CREAT, 0600);
    if (count < 3 || file < 0 || ftruncate(file, 1 << 20) != 0) return 9;
    memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    append(1000);
    puts("appended");
    fflush(stdout);
    if (strcmp(words[1], "fail") == 0) return 7;
    if (strcmp(words[1], "crash") == 0) raise(SIGSEGV);
    if (strcmp(words[1], "sleep") == 0) sleep(60);
    if (strcmp(words[1], "fork") == 0) {
        if (fork() == 0) { append(500); _exit(0); }
        wait(NULL);
    }
    if (strcmp(words[1], "threads") == 0)
        for (int number = 0; number < 1000; number++) {
            pthread_t thread;
            pthread_create(&thread, NULL, work, NULL);
            pthread_join(thread, NULL);
        }
    if (strcmp(words[1], "files") == 0) {
        static char buffer[65536];
        int other = open(words[3], O_RDWR | O_CREAT, 0600);
        if (write(other, buffer, sizeof buffer) < 0 || pread(other, buffer, 4096, 0) < 0 || fsync(other) < 0) return 8;
        ((volatile long *)memory)[70000] = 1;
        msync(memory, 1 << 20, MS_SYNC);
    }
}
"""


@pytest.fixture
def ran(program: str) -> Callable[..., Done]:
    """`xpline run` in a process of its own, whose streams are the traced program's too."""

    def run(*words: object, **options: object) -> Done:
        command = [program, "run", *map(str, words)]
        return subprocess.run(  # type: ignore[call-overload]
            command, capture_output=True, text=True, timeout=120, **options
        )

    return run


@needs_tracer
@pytest.mark.parametrize("rule", [rule.name for rule in RULES])
def test_the_programs_of_a_rule_break_it_and_keep_it(rule: str, built: Path, tmp_path: Path) -> None:
    (tmp_path / "pmem").mkdir()
    for kind, expected in (("bad", [rule]), ("good", [])):
        command = [str(built / f"{rule}.{kind}"), str(tmp_path / "pmem" / "file")]
        run = run_program(command, pmem=[tmp_path / "pmem"], on=PLATFORMS.get(rule, "optane"), folder=tmp_path)
        assert run.exit_status == 0
        findings = advise(run)
        assert [finding.rule.name for finding in findings] == expected, [finding.to_dict() for finding in findings]
        if findings and findings[0].line and findings[0].line.file:
            assert Path(findings[0].line.file).name in ("pmem.h", f"{rule}.bad.c")


@needs_tracer
def test_status_and_output_are_the_programs(app: Path, tmp_path: Path, ran: Callable[..., Done]) -> None:
    done = ran("--pmem", tmp_path, "--", app, "fail", tmp_path / "file")
    assert (done.returncode, done.stdout) == (7, "appended\n"), done.stderr
    assert "on optane" in done.stderr and "app.c" in done.stderr
    done = ran("--pmem", tmp_path, "--out", tmp_path / "out", "--", app, "crash", tmp_path / "file")
    assert done.returncode == 128 + signal.SIGSEGV, done.stderr
    result = json.loads((tmp_path / "out" / "run.json").read_text())
    assert sum(line["flushes"] for line in result["lines"]) == 1000


@needs_tracer
def test_processes_and_threads_are_followed(app: Path, tmp_path: Path) -> None:
    for what, flushes in (("fork", 1500), ("threads", 5000)):
        run = run_program([str(app), what, str(tmp_path / "file")], pmem=[tmp_path])
        assert run.exit_status == 0
        assert sum(line.facts["flushes"] for line in run.lines) == flushes
    assert run.totals["threads"] == 1001


@needs_tracer
def test_callers_are_followed(tmp_path: Path) -> None:
    program = tmp_path / "callers"
    options = ["-O1", "-g", "-fno-inline", "-fno-optimize-sibling-calls", "-pthread"]
    subprocess.run(["cc", *options, PROGRAMS.parent / "programs/callers.c", "-o", program], check=True)
    run = run_program([str(program), str(tmp_path / "file")], pmem=[tmp_path], callers=True)
    assert run.exit_status == 0
    flushes: dict[tuple[str | None, ...], int] = {}
    own = {"main", "left", "right", "deep", "on_signal", "work"}
    for line in run.lines:
        assert not line.facts["flushes"] or line.function == "leaf"
        for caller in line.callers:
            stack = tuple(function for function, _, _ in caller.frames if function in own)
            flushes[stack] = flushes.get(stack, 0) + caller.facts["flushes"]
    assert {stack: count for stack, count in flushes.items() if count} == {
        ("main", "left"): 102,
        ("main", "right"): 1,
        ("main", "right", "left"): 1,
        ("main", "on_signal"): 1,
        ("work", "right"): 1,
        ("work", "right", "left"): 1,
    }
    folded = folded_of(run).decode().splitlines()
    assert any(";main;left;leaf;callers.c:" in line for line in folded)
    assert sum(int(line.rpartition(" ")[2]) for line in folded) == pytest.approx(run.main.busy_ns, rel=0.01)
    assert "called from left (callers.c:" in summary(run, [])


@needs_tracer
def test_calls_on_tracked_files_are_copies(app: Path, tmp_path: Path) -> None:
    run = run_program([str(app), "files", str(tmp_path / "file"), str(tmp_path / "other")], pmem=[tmp_path])
    calls = {line.call: line.facts for line in run.lines if line.call}
    assert calls["write"]["ntstore_bytes"] == 65536
    assert calls["read"]["load_bytes"] == 4096
    assert calls["msync"]["flushes"] >= 64
    assert not any(line.facts["unflushed"] for line in run.lines), "msync made it persistent"


@needs_tracer
def test_a_trace_runs_again_on_other_platforms(app: Path, tmp_path: Path, ran: Callable[..., Done]) -> None:
    trace = tmp_path / "streams"
    done = ran("--pmem", tmp_path, "--trace", trace, "--no-advice", "--", app, "run", tmp_path / "file")
    assert done.returncode == 0, done.stderr
    run = run_recorded(trace, "optane", ["dram"])
    assert run.ratios()["dram"] > 1
    assert any(line.function == "append" for line in run.lines)
    assert rerun(run, {"kind": "spread-dimms"}) is not None
    done = ran("--replay", trace, "--on", "dram", "--json")
    assert json.loads(done.stdout)["outcomes"][0]["platform"] == "dram", done.stderr


@needs_tracer
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk")
def test_a_full_disk_is_told_and_the_run_reported(app: Path, tmp_path: Path, program: str) -> None:
    # What is recorded goes to a temporary name beside the file: a limit on file sizes stands for the full disk.
    limited = f"ulimit -f 1; exec {program} run --pmem {tmp_path} --trace {tmp_path}/streams --no-advice -- "
    done = subprocess.run(
        ["bash", "-c", f"trap '' XFSZ; {limited} {app} threads {tmp_path}/file"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2 and "streams" in done.stderr, done.stderr
    assert not (tmp_path / "streams").exists()


@needs_tracer
def test_ctrl_c_ends_the_program_and_the_report_covers_what_ran(app: Path, tmp_path: Path, program: str) -> None:
    command = [program, "run", "--pmem", tmp_path, "--no-advice", "--", app, "sleep", tmp_path / "file"]
    process = subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout and process.stdout.readline() == "appended\n"
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "on optane" in errors


@needs_tracer
def test_a_program_that_touches_nothing(tmp_path: Path, ran: Callable[..., Done]) -> None:
    done = ran("--pmem", tmp_path, "--", "true")
    assert done.returncode == 0 and "did not touch" in done.stderr, done.stderr


@needs_tracer
def test_everything_is_modelled_with_heap(app: Path, tmp_path: Path) -> None:
    run = run_program([str(app), "run", str(tmp_path / "file")], heap=True)
    assert run.heap and run.main.counters["bytes_loaded"] > 100_000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--", "true"], "--pmem PATH for files under a path, or --heap"),
        (["--pmem", "/no/such/place", "--", "true"], "--pmem /no/such/place: No such file or directory"),
        (["--pmem", ".", "--", "no-such-program"], "no-such-program: there is no such program"),
        (["--pmem", ".", "--", "tests/rules/pmem.h"], "is not executable"),
        (["--pmem", ".", "--", "tests"], "is a folder"),
        (["--pmem", "."], "name a program to run"),
        (["--pmem", ".", "--on", "optan", "--", "true"], "optan"),
        (["--replay", "README.md"], "is no recorded run"),
        (["--replay", "x", "--heap"], "leave out the program"),
        (["--pmem", ".", "--trace", "/no/such/folder/file", "--", "true"], "does not exist"),
    ],
)
def test_bad_input_is_told(words: list[str], message: str, ran: Callable[..., Done]) -> None:
    done = ran(*words, cwd=Path(__file__).parents[1])
    assert done.returncode == 2 and message in done.stderr, done.stderr


def test_a_program_for_another_machine_is_refused(tmp_path: Path, ran: Callable[..., Done]) -> None:
    header = bytearray(b"\x7fELF\x02\x01\x01" + b"\0" * 57)
    header[18] = 183
    for name, content, message in (
        ("arm", bytes(header), "not for x86-64"),
        ("text", b"hello", "is no executable"),
        ("script", b"#!/no/such/shell\n", "no such program"),
    ):
        program = tmp_path / name
        program.write_bytes(content)
        program.chmod(0o755)
        done = ran("--pmem", tmp_path, "--", program)
        assert done.returncode == 2 and message in done.stderr, done.stderr
