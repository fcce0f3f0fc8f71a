"""QEMU's source: an archive that the user names, or Debian's, which its own tools fetch and check."""

from __future__ import annotations

import re
import subprocess
import tarfile
from pathlib import Path

from xpline.errors import XplineError
from xpline.files import make_folder

#: The release of Debian whose QEMU is fetched.
RELEASE = "trixie"

#: The least version of the plugin interface: the first that QEMU 10 has.
INTERFACE = 4


def fetch(sources: Path) -> Path:
    """Fetch the archive into a folder, unless it is there. Needs no root: the package lists are kept in the folder too.

    The archive's signature and checksums are checked by apt.
    """
    found = sorted(sources.glob("qemu_*.orig.tar.xz"))
    if found:
        return found[-1]
    lists, cache, downloads = sources / "apt" / "lists", sources / "apt" / "cache", sources / "apt" / "downloads"
    for path in (lists / "partial", cache / "archives" / "partial", downloads):
        make_folder(path)
    entry = sources / "apt" / "sources.list"
    entry.write_text(f"deb-src {_signed_by()}{_archive()} {RELEASE} main\n")
    options = {
        "Dir::Etc::SourceList": entry,
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::Lists": lists,
        "Dir::Cache": cache,
        "APT::Sandbox::User": "",
    }
    settings = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
    _run(["apt-get", *settings, "update"], downloads)
    _run(["apt-get", *settings, "source", "--download-only", "qemu"], downloads)
    archives = sorted(downloads.glob("qemu_*.orig.tar.xz"))
    if not archives:
        raise XplineError(f"{downloads}: apt-get fetched no archive of QEMU's source; name one with --source")
    return archives[-1].rename(sources / archives[-1].name)


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack an archive, unless that is done, and return the folder of the source in it."""
    done = folder / ".unpacked"
    if not done.is_file():
        make_folder(folder)
        try:
            with tarfile.open(archive) as file:
                file.extractall(folder, filter="tar")
        except (OSError, tarfile.TarError) as error:
            raise XplineError(f"{archive}: cannot be unpacked as an archive of QEMU's source: {error}") from error
        done.touch()
    roots = [path.parent for path in sorted(folder.glob("*/configure"))]
    if not roots:
        raise XplineError(f"{archive}: holds no source of QEMU: there is no configure in its top folder")
    return roots[0]


def version_of(root: Path, archive: Path) -> str:
    """The version of a source, once it is known to have the plugin interface that the tracer needs."""
    try:
        version = (root / "VERSION").read_text().strip()
        found = max(
            (path for path in root.glob("include/**/qemu-plugin.h")), key=lambda path: path.stat().st_size, default=None
        )
        text = found.read_text() if found else ""
    except OSError as error:
        raise XplineError(f"{archive}: is no source of QEMU: {error}") from error
    interface = re.search(r"define\s+QEMU_PLUGIN_VERSION\s+(\d+)", text)
    if interface is None or int(interface[1]) < INTERFACE:
        found_version = interface[1] if interface else "none"
        raise XplineError(
            f"{archive}: QEMU {version} has version {found_version} of the plugin interface and the tracer needs "
            f"{INTERFACE}; name the archive of a QEMU 10"
        )
    return version


def apply(patch: Path, root: Path) -> bool:
    """Apply what xpline adds to QEMU, and say whether that could be done. Without it, tracing costs more.

    The patch is for QEMU 10.0; it applies whole or not at all.
    """
    done, command = root / ".patched", ["patch", "--strip=1", "--forward", "--batch", "--input", str(patch)]
    if not done.is_file():
        dry = subprocess.run([*command, "--dry-run"], cwd=root, capture_output=True, check=False)
        if dry.returncode != 0:
            return False
        _run(command, root)
        done.touch()
    return True


def _archive() -> str:
    """The address of Debian's archive, as this machine has it."""
    listing = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN) $(LABEL)"]
    result = subprocess.run(listing, capture_output=True, text=True, check=False)
    for line in result.stdout.splitlines():
        address, _, names = line.partition(" ")
        if names.split() == ["Debian", "Debian"]:
            return address
    raise XplineError(
        "apt-get knows no archive of Debian here, from which to take QEMU's source; name a release archive of QEMU 10, "
        "qemu-10.0.x.tar.xz, with --source"
    )


def _signed_by() -> str:
    keys = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
    return f"[signed-by={keys}] " if keys.is_file() else ""


def _run(command: list[str], folder: Path) -> None:
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        said = (result.stderr.strip() or result.stdout.strip()).splitlines()[-1:]
        raise XplineError(
            f"{command[0]} failed on QEMU's source: {' '.join(said)}; name a release archive of QEMU 10, "
            "qemu-10.0.x.tar.xz, with --source"
        )
