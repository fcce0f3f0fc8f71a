"""Files that are either whole or absent: written to a temporary name, then put in place."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from xpline.errors import XplineError


def check_writable(path: Path) -> None:
    """Raise XplineError, before any work is done, when a file cannot be created at ``path``."""
    if path.is_dir():
        raise XplineError(f"{path}: is a folder; give the name of a file to write")
    if not path.parent.is_dir():
        raise XplineError(f"{path}: the folder {path.parent} does not exist; create it first")
    if not _can_create_in(path.parent):
        raise XplineError(f"{path}: no permission to write in {path.parent}")


def make_folder(path: Path) -> None:
    """Create a folder and those above it, and raise XplineError when files cannot be created in it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise XplineError(f"output folder {path}: cannot be created: {error.strerror}") from error
    if not _can_create_in(path):
        raise XplineError(f"output folder {path}: no permission to write in it")


def replace_file(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path`` in one step: readers see the old file or the new one, never a part."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError as error:
        raise XplineError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _can_create_in(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
