"""The tracer that runs programs for ``xpline run``: an emulator of our own build, and the plugin that it loads.

It stands in the user's cache folder, one folder for each source that it was built from::

    ~/.cache/xpline/tracer/
        sources/                       what was downloaded
        build/                         where it is built; kept, so that an interrupted build goes on
        qemu-KEY/qemu-x86_64           ready to run
        qemu-KEY/libxpline_tracer-PLUGIN.so
        installed-PLUGIN.json          what belongs to the plugin's sources of that checksum

Clones with different sources of the plugin keep out of each other's way.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from xpline.errors import XplineError
from xpline.files import replace_file

__all__ = ["Tracer", "folder", "locate"]

_INSTALL = "run `xpline tracer install`"


@dataclass(frozen=True)
class Tracer:
    """What is installed."""

    qemu: Path
    plugin: Path
    #: The emulator's version.
    version: str
    #: Whether it has xpline's additions (``qemu.patch``), which make tracing cheap.
    patched: bool
    #: SHA-256 of the source archive, of the emulator, and of the plugin, in hexadecimal digits.
    source_sha256: str
    qemu_sha256: str
    plugin_sha256: str
    #: SHA-256 of the plugin's source files, which the plugin belongs to.
    plugin_source_sha256: str

    def faults(self) -> list[str]:
        """What is wrong with the installed files, in words; nothing, if all is well."""
        files = ((self.qemu, self.qemu_sha256), (self.plugin, self.plugin_sha256))
        faults = [f"{path} is missing" for path, _ in files if not path.is_file()]
        changed = (path for path, wanted in files if path.is_file() and sha256_of(path) != wanted)
        return faults + [f"{path} is not as it was installed" for path in changed]

    def save(self) -> None:
        """Put this into use."""
        fields = {name: str(value) if isinstance(value, Path) else value for name, value in asdict(self).items()}
        replace_file(_record(self.plugin_source_sha256), json.dumps(fields, indent=2).encode())


def folder() -> Path:
    """Where the tracer stands: in ``$XDG_CACHE_HOME``, or ``~/.cache``."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "xpline" / "tracer"


def _record(plugin_source: str) -> Path:
    return folder() / f"installed-{plugin_source[:16]}.json"


def installed() -> Tracer | None:
    """What is installed for this xpline, if anything is; its files may still be missing or changed."""
    clone = plugin_sources()
    if clone is None:
        return None
    path = _record(plugin_source_sha256(clone))
    try:
        fields: dict[str, Any] = json.loads(path.read_text())
        return Tracer(**fields | {name: Path(fields[name]) for name in ("qemu", "plugin")})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise XplineError(f"{path}: cannot be read ({error}); {_INSTALL} to have the tracer anew") from error


def locate() -> Tracer:
    """The tracer, ready to run.

    Raises XplineError where it is not installed, or only one that belongs to other sources.
    """
    tracer = installed()
    if tracer is None and any(folder().glob("installed-*.json")):
        raise XplineError(f"the tracer that is installed belongs to other sources; {_INSTALL} (some seconds)")
    if tracer is None:
        raise XplineError(f"the tracer is not installed; {_INSTALL} (some minutes, once)")
    for path in (tracer.qemu, tracer.plugin):
        if not path.is_file():
            raise XplineError(f"{path}: is missing; {_INSTALL}")
    return tracer


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def plugin_sources() -> Path | None:
    """The root of the clone that this xpline was built from, if it runs from one."""
    root = Path(__file__).resolve().parents[3]
    return root if (root / "crates" / "xpline-tracer" / "Cargo.toml").is_file() else None


@cache
def plugin_source_sha256(root: Path) -> str:
    """Of the plugin's source files and those of the streams it writes."""
    digest = hashlib.sha256()
    for crate in ("xpline-tracer", "xpline-wire"):
        for path in sorted((root / "crates" / crate).rglob("*")):
            if path.is_file() and (path.name in ("Cargo.toml", "build.rs", "qemu.patch") or path.parent.name == "src"):
                digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
