"""What the documents show works: every `sh` block runs, and every link leads somewhere.

Examples in Python are run by pytest itself (--doctest-glob). Blocks marked `console` show commands that need more than
an installed xpline, such as a data set or a clone; they are not run.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from xpline import Platform, table

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
ids = [str(document.relative_to(ROOT)) for document in DOCUMENTS]


@pytest.mark.parametrize("document", DOCUMENTS, ids=ids)
def test_the_commands_run(document, tmp_path):
    blocks = re.findall(r"^```sh\n(.*?)^```$", document.read_text(), re.DOTALL | re.MULTILINE)
    script = "set -eu\n" + "\n".join(blocks)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        ["bash"], input=script, cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("document", DOCUMENTS, ids=ids)
def test_the_links_lead_somewhere(document):
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text())
    dead = [link for link in links if "://" not in link and not (document.parent / link).exists()]
    assert not dead


def test_the_reference_names_every_column_of_the_table():
    rows = (ROOT / "docs/reference/table.md").read_text().splitlines()
    cells = [row.split("|")[1] for row in rows if row.startswith("| `")]
    assert sorted(re.findall(r"`(\w+)`", " ".join(cells))) == sorted(table.COLUMNS | table.HOST)


def test_every_platform_key_that_is_named_exists():
    keys = {entry.key for name in ("optane", "dram") for entry in Platform(name).show()}
    sections = "|".join({key.split(".")[0] for key in keys if "." in key})
    pattern = rf"""[`"\s]((?:{sections})\.[a-z_.]+)[`"=]"""
    named = {key for document in DOCUMENTS for key in re.findall(pattern, document.read_text())}
    assert "optane.xpbuffer.lines" in named
    assert named <= keys
