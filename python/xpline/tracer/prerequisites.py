"""What the tracer's build needs of the machine, and how to get what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec

from xpline.errors import XplineError


@dataclass(frozen=True)
class Package:
    """The names of what brings a prerequisite."""

    apt: str
    dnf: str


#: Programs on the path, what for, and where they come from.
_PROGRAMS = {
    "cc": ("a C compiler", Package("build-essential", "gcc")),
    "ninja": ("which runs the build", Package("ninja-build", "ninja-build")),
    "pkg-config": ("which finds libraries", Package("pkg-config", "pkgconf-pkg-config")),
    "patch": ("which adds what xpline needs to QEMU", Package("patch", "patch")),
    "bash": ("which runs the emulator's configure", Package("bash", "bash")),
}
_GLIB = Package("libglib2.0-dev", "glib2-devel")
_VENV = Package("python3-venv", "python3")


def check(download: bool) -> None:
    """Raise XplineError, naming all that is missing and the command that installs it. ``download`` if the source is to
    come from Debian's archive."""
    if os.uname().sysname != "Linux" or os.uname().machine != "x86_64":
        system = f"{os.uname().sysname} on {os.uname().machine}"
        raise XplineError(f"the tracer runs on Linux on x86_64 only, and this is {system}")
    missing: list[str] = []
    packages: list[Package] = []
    for program, (purpose, package) in _PROGRAMS.items():
        if shutil.which(program) is None:
            missing.append(f"{program} ({purpose})")
            packages.append(package)
    if shutil.which("pkg-config") and not _has_glib():
        missing.append("glib 2.66 or later, with its headers")
        packages.append(_GLIB)
    if find_spec("ensurepip") is None:
        missing.append("venv, a module of Python")
        packages.append(_VENV)
    hints = [_command(packages)] if packages else []
    if shutil.which("cargo") is None:
        missing.append("cargo (which builds the plugin)")
        hints.append("install Rust as its own site says")
    if download and shutil.which("apt-get") is None:
        missing.append("apt-get (which fetches QEMU's source)")
        hints.append("or name a release archive of QEMU 10, qemu-10.0.x.tar.xz, with --source")
    if missing:
        raise XplineError(
            f"the tracer cannot be built; missing: {', '.join(missing)}; install with: {'; '.join(hints)}"
        )


def _has_glib() -> bool:
    return subprocess.run(["pkg-config", "--exists", "glib-2.0 >= 2.66"], check=False).returncode == 0


def _command(packages: list[Package]) -> str:
    sudo = "" if os.geteuid() == 0 or shutil.which("sudo") is None else "sudo "
    if shutil.which("apt-get"):
        return f"{sudo}apt-get install {' '.join(package.apt for package in packages)}"
    if shutil.which("dnf"):
        return f"{sudo}dnf install {' '.join(package.dnf for package in packages)}"
    return f"your package manager (Debian's names: {' '.join(package.apt for package in packages)})"
