"""What many tests need: the command line in this process, the program itself, and the tracer where it is installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from xpline import XplineError
from xpline.cli import main

#: Exit status, standard output, and standard error on one line.
Said = tuple[int, str, str]


@pytest.fixture
def xpline(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Said]:
    """Run a command in an empty folder; its exit status, standard output, and standard error on one line.

    Where messages are wrapped depends on the terminal.
    """
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Said:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert ended.value.code is None or isinstance(ended.value.code, int)
        return ended.value.code or 0, out, " ".join(err.split())

    return run


@pytest.fixture(scope="session")
def program() -> str:
    """The command of this environment, for tests that need a process of its own."""
    return str(Path(sys.executable).with_name("xpline"))


@pytest.fixture(scope="session")
def tracer() -> None:
    """Skips tests where no program can be traced."""
    from xpline.tracer import locate

    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    try:
        locate()
    except XplineError as error:
        pytest.skip(str(error))


@pytest.fixture
def compiled(tmp_path: Path) -> Callable[..., str]:
    """Compile a program in C, with libraries; skips the test where those are not there."""

    def compile(source: Path, *libraries: str) -> str:
        target = tmp_path / source.stem
        linked = [f"-l{library}" for library in libraries]
        command = ["cc", "-O2", "-g", "-pthread", source, "-o", target, *linked]
        built = subprocess.run(command, capture_output=True, text=True)
        if built.returncode and libraries and ("fatal error" in built.stderr or "cannot find" in built.stderr):
            pytest.skip(f"{' and '.join(libraries)} cannot be compiled against: install Debian's -dev packages")
        assert built.returncode == 0, built.stderr
        return str(target)

    return compile
