"""Running a program under the tracer."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from os import PathLike, fspath
from pathlib import Path

from xpline import _native
from xpline.errors import XplineError
from xpline.files import check_writable
from xpline.platform import Platform
from xpline.run.outcome import Run

#: Accesses that are recorded to check advice, unless the user asked for a recording: more would fill the disk.
MOST_RECORDED = 50_000_000

#: Any number of accesses.
_ALL = 2**63


def run_program(
    command: Sequence[str],
    pmem: Sequence[str | PathLike[str]] = (),
    heap: bool = False,
    on: Platform | str = "optane",
    compare: Sequence[Platform | str] = (),
    trace: str | PathLike[str] | None = None,
    folder: str | PathLike[str] | None = None,
    progress: Callable[[int], object] | None = None,
    callers: bool = False,
) -> Run:
    """Run a program, unmodified, with files under ``pmem`` (or, with ``heap``, all its memory) on modelled platforms.

    With ``callers`` it is known who called the functions that touch that memory, at the cost of a look at every call.

    The op streams are recorded in ``trace``; or in ``folder``, as far as checking advice needs them; or nowhere.
    """
    from xpline import tracer

    if not command:
        raise XplineError("name a program to run, such as: xpline run --pmem /mnt/pmem -- ./app")
    if not pmem and not heap:
        raise XplineError("say which memory to model: --pmem PATH for files under a path, or --heap for all memory")
    platforms = [one if isinstance(one, Platform) else Platform(one) for one in (on, *compare)]
    paths = [_tracked(path) for path in pmem]
    executable, arguments = resolve(command)
    record = None
    if trace is not None:
        record = Path(trace).absolute()
        check_writable(record)
    elif folder is not None:
        record = Path(folder).absolute() / "streams"
    found = tracer.locate()
    with tempfile.TemporaryDirectory(prefix="xpline-") as session:
        request = {
            "qemu": fspath(found.qemu),
            "plugin": fspath(found.plugin),
            "folder": session,
            "everything": heap,
            "callers": callers,
            "paths": paths,
            "executable": executable,
            "name": command[0] if executable == _found(command[0]) else executable,
            "arguments": arguments,
            "command": list(command),
            "record": None if record is None else fspath(record),
            "most_recorded": _ALL if trace is not None else MOST_RECORDED,
        }
        natives = [platform._native for platform in platforms]
        text, interrupted = _native.run_program(natives, json.dumps(request), progress, not _in_foreground())
    data = json.loads(text)
    if data["record_error"] and trace is not None:
        # The run is what costs time: it is reported all the same, and the trace is missed at the end.
        data["stream_errors"].append(f"--trace: {data['record_error']}")
    notes = [*data["stream_errors"]]
    if data["totals"]["broken"]:
        notes.append(
            f"{data['totals']['broken']} of its processes were killed: what they did until then is in the report"
        )
    if data["totals"]["wrapped_bytes"]:
        notes.append("more than 128 GiB were mapped, the size of the model's memory: some files share addresses")
    failed = data["record_error"] is not None
    return Run.of_json(
        data,
        platforms,
        command=list(command),
        heap=heap,
        interrupted=interrupted,
        notes=notes,
        recording=None if failed else record,
        cut=data["cut"],
    )


def resolve(command: Sequence[str]) -> tuple[str, list[str]]:
    """The x86-64 executable that a command runs, and its arguments: a script's is its interpreter.

    >>> resolve(["no-such-program"])
    Traceback (most recent call last):
    ...
    xpline.XplineError: no-such-program: there is no such program...
    """
    program, arguments = _found(command[0]), list(command[1:])
    for _ in range(4):  # an interpreter may be a script itself
        try:
            with Path(program).open("rb") as file:
                head = file.read(256)
        except OSError as error:
            raise XplineError(f"{program}: cannot be read: {error.strerror}") from error
        if not head.startswith(b"#!"):
            _check_elf(program, head)
            return program, arguments
        words = head[2:].split(b"\n")[0].decode(errors="replace").split(maxsplit=1)
        if not words:
            break
        arguments = [*words[1:], program, *arguments]
        program = _found(words[0].strip())
    raise XplineError(f"{command[0]}: its first line names no interpreter that can be run")


def _found(name: str) -> str:
    found = shutil.which(name)
    if found is not None:
        return fspath(Path(found).absolute())
    if Path(name).is_dir():
        raise XplineError(f"{name}: is a folder; name a program")
    if Path(name).exists():
        raise XplineError(f"{name}: is not executable; chmod +x makes it so, if it is a program")
    raise XplineError(f"{name}: there is no such program, here or in PATH")


def _check_elf(program: str, head: bytes) -> None:
    if head[:4] != b"\x7fELF":
        raise XplineError(f"{program}: is no executable: it begins neither as ELF nor with #!")
    machine = int.from_bytes(head[18:20], "little")
    if head[4] != 2 or machine != 62:
        raise XplineError(
            f"{program}: is not for x86-64 (its ELF machine is {machine}); only x86-64 programs can be run"
        )


def _tracked(path: str | PathLike[str]) -> str:
    try:
        return fspath(Path(path).resolve(strict=True))
    except OSError as error:
        raise XplineError(f"--pmem {fspath(path)}: {error.strerror}; name a file or folder that exists") from error


def _in_foreground() -> bool:
    """Whether a Ctrl-C at the terminal reaches the program as well as us."""
    try:
        with Path("/dev/tty").open() as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False
