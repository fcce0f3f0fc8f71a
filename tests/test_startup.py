"""Starting up: no command waits for libraries that only others need."""

import subprocess
import sys

import pytest

import xpline
from xpline.cli import COMMANDS, main


def loaded_by(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after running ``code``."""
    script = (
        f"import sys\ntry:\n    {code}\nexcept SystemExit:\n    pass\nprint(*sys.modules, sep='\\n', file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    return set(result.stderr.split())


@pytest.mark.parametrize("code", ["import xpline", "from xpline.cli import main; main(['platforms'])"])
def test_polars_and_altair_wait_until_they_are_needed(code):
    modules = loaded_by(code)
    assert "xpline._native" in modules
    assert not modules & {"polars", "altair", "vl_convert", "jinja2", "pydantic"}


def test_a_replay_loads_next_to_nothing(tmp_path):
    path = tmp_path / "t"
    path.write_text("LD 0x40\n")
    modules = loaded_by(f"from xpline.cli import main; main(['replay', {str(path)!r}])")
    assert "xpline.cli.replay" in modules
    assert not modules & {"polars", "altair", "pydantic", "rich", "tempfile"}


def test_a_run_that_writes_no_report_draws_nothing():
    modules = loaded_by("import xpline.cli.run, xpline.run.summary, xpline.advice")
    assert "xpline.run.lines" in modules
    assert not modules & {"polars", "altair", "jinja2", "pydantic"}


def test_bench_is_there_all_the_same():
    assert "polars" in loaded_by("import xpline; xpline.bench.run")
    with pytest.raises(AttributeError, match="no attribute 'sofa'"):
        xpline.sofa  # noqa: B018


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    assert all(f" {command} " in out for command in COMMANDS)
