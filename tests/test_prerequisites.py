"""scripts/check-prerequisites on machines that lack something: each made of a PATH with stand-ins."""

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "check-prerequisites"
MACHINE = {
    "git": "",
    "cc": "",
    "apt-get": "",
    "python3": 'case "$*" in *version*) echo 3.13 ;; esac',
    "cargo": "echo 'cargo 1.90.0 (stand-in)'",
}


def check(tmp_path: Path, **changes: str | None) -> subprocess.CompletedProcess[str]:
    """Run the script on a machine that differs from MACHINE by `changes` (None: the program is not there)."""
    for name, body in (MACHINE | changes).items():
        if body is not None:
            program = tmp_path / name
            program.write_text(f"#!/bin/sh\n{body}\n")
            program.chmod(0o755)
    return subprocess.run([SCRIPT], env={"PATH": str(tmp_path)}, capture_output=True, text=True)


def test_a_machine_that_has_everything_passes_in_silence(tmp_path):
    result = check(tmp_path)
    assert (result.returncode, result.stderr, result.stdout) == (0, "", "")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"git": None}, "missing: git; install with: apt-get install git"),
        ({"cc": None}, "missing: cc (a C compiler, to link with); install with: apt-get install build-essential"),
        ({"python3": None}, "missing: python >= 3.11 (no python3 that runs); install with: apt-get install python3"),
        ({"python3": "echo 3.9"}, "missing: python >= 3.11 (python3 is 3.9); install with: "),
        (
            {"python3": 'case "$*" in *version*) echo 3.12 ;; *) exit 1 ;; esac'},
            "missing: venv, a module of python3; install with: apt-get install python3.12-venv",
        ),
        ({"cargo": "exit 1"}, "missing: cargo >= 1.88 (no cargo that runs); install with: curl "),
        ({"cargo": "echo cargo 1.87.0"}, "missing: cargo >= 1.88 (found 1.87.0); install with: rustup update stable"),
    ],
)
def test_what_is_missing_is_said_in_one_line(tmp_path, changes, said):
    result = check(tmp_path, **changes)
    assert result.returncode == 1
    assert result.stderr.startswith(said)
    assert result.stderr.count("\n") == 1


def test_everything_missing_is_said_at_once(tmp_path):
    result = check(tmp_path, **dict.fromkeys(MACHINE))
    assert result.returncode == 1
    assert [line.split()[1].rstrip(";") for line in result.stderr.splitlines()] == ["git", "cc", "python", "cargo"]
