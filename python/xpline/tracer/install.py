"""Building the tracer: QEMU's user-mode emulator with its plugin interface, and the plugin.

Each step leaves what it made in the cache folder and is passed over when it is there, so a build that was interrupted
goes on where it stopped.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from xpline.errors import XplineError
from xpline.files import make_folder, replace_file
from xpline.tracer import Tracer, folder, plugin_source_sha256, plugin_sources, prerequisites, sha256_of, source

#: How the emulator is configured: one target, plugins, and nothing that it does not need.
CONFIGURE = (
    "--target-list=x86_64-linux-user",
    "--enable-plugins",
    "--disable-system",
    "--disable-tools",
    "--disable-docs",
    "--disable-capstone",
    "--disable-werror",
    "--disable-download",
    "--disable-install-blobs",
    "--disable-guest-agent",
)

#: What configure needs of Python's packages, with the checksums of their wheels.
BUILD_TOOLS = """\
meson==1.7.2 --hash=sha256:82c6818dc81743c96de3a458f06175776ebfde4081195ea31ea6971838f25e38
pycotap==1.3.1 --hash=sha256:1c3a25b3ff89e48f4e00f1f71dbbc1642b4f65c65d416524d07e73492fff25ea
"""

#: Told of the progress: steps done, of how many, and the title of what is under way.
Progress = Callable[[int, int, str], None]


def install(archive: Path | None = None, progress: Progress = lambda done, total, step: None) -> Tracer:
    """Build and put into use what is not there yet. ``archive`` is QEMU's source; Debian's, if none is named.

    Raises XplineError with what is missing or went wrong, and where the build's output stands.
    """
    clone = plugin_sources()
    if clone is None:
        raise XplineError("the plugin is built from xpline's sources: install xpline from a clone of them")
    if archive is not None and not archive.is_file():
        raise XplineError(f"{archive}: there is no such file; name an archive of QEMU's source")
    prerequisites.check(download=archive is None and not _fetched())
    base = folder()
    make_folder(base / "sources")
    with _alone(base):
        try:
            return _install(base, clone, archive, progress)
        except OSError as error:
            raise XplineError(
                f"{error.filename or base}: {error.strerror}; run `xpline tracer install` again"
            ) from error


def _install(base: Path, clone: Path, archive: Path | None, progress: Progress) -> Tracer:
    progress(0, 1, "fetching QEMU's source")
    archive = archive.resolve() if archive else source.fetch(base / "sources")
    source_sha256 = sha256_of(archive)
    patch = clone / "crates" / "xpline-tracer" / "qemu.patch"
    key = sha256(f"{source_sha256} {sha256_of(patch)}".encode()).hexdigest()[:16]
    home = base / f"qemu-{key}"
    if not _is_built(home):
        make_folder(home)
        _build_qemu(archive, patch, base / "build" / f"qemu-{key}", home, progress)
    plugin = _build_plugin(clone, home, progress)
    qemu = home / "qemu-x86_64"
    tracer = Tracer(
        qemu=qemu,
        plugin=plugin,
        version=(home / "version").read_text(),
        patched=(home / "patched").read_text() == "yes",
        source_sha256=source_sha256,
        qemu_sha256=sha256_of(qemu),
        plugin_sha256=sha256_of(plugin),
        plugin_source_sha256=plugin_source_sha256(clone),
    )
    _try(tracer)
    tracer.save()
    return tracer


@contextmanager
def _alone(base: Path) -> Iterator[None]:
    """While no other build is under way."""
    with (base / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise XplineError(f"{base}: another xpline tracer install is under way; wait for its end") from error
        yield


def _fetched() -> bool:
    return any((folder() / "sources").glob("qemu_*.orig.tar.xz"))


def _is_built(home: Path) -> bool:
    ready, checksum = home / "qemu-x86_64", home / "qemu-x86_64.sha256"
    return ready.is_file() and checksum.is_file() and checksum.read_text() == sha256_of(ready)


def _build_qemu(archive: Path, patch: Path, work: Path, home: Path, progress: Progress) -> None:
    progress(0, 1, "unpacking it")
    root = source.unpack(archive, work / "source")
    version = source.version_of(root, archive)
    patched = source.apply(patch, root)
    build, tools, log = work / "build", work / "tools", work / "log.txt"
    make_folder(build)
    log.unlink(missing_ok=True)
    python = tools / "bin" / "python3"
    if not (tools / ".ready").is_file():
        progress(0, 1, "fetching meson")
        wanted = work / "tools.txt"
        wanted.write_text(BUILD_TOOLS)
        _logged([sys.executable, "-m", "venv", "--clear", tools], work, log)
        _logged([python, "-m", "pip", "install", "--require-hashes", "--requirement", wanted], work, log)
        (tools / ".ready").touch()
    if not (build / "build.ninja").is_file():
        progress(0, 1, "configuring QEMU")
        _logged([root / "configure", f"--python={python}", *CONFIGURE], build, log)

    def count(line: str) -> None:
        if found := re.match(r"\[(\d+)/(\d+)\]", line):
            progress(int(found[1]), int(found[2]), f"building QEMU {version}")

    _logged(["ninja", "qemu-x86_64"], build, log, count)
    ready = _placed(build / "qemu-x86_64", home / "qemu-x86_64")
    replace_file(home / "version", version.encode())
    replace_file(home / "patched", b"yes" if patched else b"no")
    replace_file(home / "qemu-x86_64.sha256", sha256_of(ready).encode())
    shutil.rmtree(work)


def _build_plugin(clone: Path, home: Path, progress: Progress) -> Path:
    progress(0, 1, "building the plugin")
    target = folder() / "build" / "plugin"
    make_folder(target)
    command = ["cargo", "build", "--release", "--locked", "--package", "xpline-tracer", "--target-dir", target]
    _logged(command, clone, target / "log.txt")
    name = f"libxpline_tracer-{plugin_source_sha256(clone)[:16]}.so"
    return _placed(target / "release" / "libxpline_tracer.so", home / name)


def _placed(made: Path, place: Path) -> Path:
    """Copy to its place in one step: processes that run keep the file that they have."""
    temporary = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        shutil.copy2(made, temporary)
        temporary.replace(place)
    except OSError as error:
        raise XplineError(f"{place}: cannot be written: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)
    return place


def _logged(command: list[object], cwd: Path, log: Path, watch: Callable[[str], None] = lambda line: None) -> None:
    """Run a command of the build, its output appended to a file and shown to ``watch`` line by line."""
    words = [str(word) for word in command]
    last = ""
    with log.open("a") as file:
        file.write(f"$ {' '.join(words)}\n")
        try:
            process = subprocess.Popen(
                words, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                errors="replace",
            )  # fmt: skip
        except OSError as error:
            raise XplineError(f"{words[0]}: cannot be started: {error.strerror}") from error
        with process:
            try:
                for line in process.stdout or ():
                    file.write(line)
                    watch(line)
                    last = line.strip() or last
            except BaseException:
                process.terminate()
                raise
    if process.returncode != 0:
        raise XplineError(f"{Path(words[0]).name} failed: {last}; its output is in {log}")


def _try(tracer: Tracer) -> None:
    """Have the emulator run a program, before it is put into use."""
    program = shutil.which("true") or "/bin/true"
    result = subprocess.run([tracer.qemu, program], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise XplineError(f"{tracer.qemu}: cannot run {program}: {result.stderr.strip() or result.returncode}")
