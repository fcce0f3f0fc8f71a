"""Platform files of fitted values: each extends a platform, and says beside each value where it comes from."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from xpline.errors import XplineError
from xpline.files import check_writable, replace_file
from xpline.fit.members import Member, Members
from xpline.fit.quantity import to_toml
from xpline.platform import platform_names


@dataclass(frozen=True)
class Value:
    """A fitted value and its source, as they stand in a file."""

    text: str
    source: str


def paths(out: Path, members: Members, names: Sequence[str]) -> dict[str, Path]:
    """The file of each member in ``names``: ``out`` for the base, ``STEM-NAME.toml`` beside it for the others.

    Raises XplineError, before any work is done, when one of them cannot be written.
    """
    files = {members.base.name: out} | {
        name: out.with_name(f"{out.stem}-{name}{out.suffix}") for name in names if name != members.base.name
    }
    for path in files.values():
        check_writable(path)
        for member in members.all:
            if path.exists() and Path(member.file).exists() and path.samefile(member.file):
                raise XplineError(f"{path}: is a platform of this fit, and cannot extend itself; name another file")
    return files


def write(files: Mapping[str, Path], members: Members, values: Mapping[str, Value], dataset: str) -> None:
    """Write the fitted values into the files of the members that have them, as :func:`paths` names them."""
    for name, path in files.items():
        shared = {key: value for key, value in values.items() if name in members.sharing(key)}
        replace_file(path, _text(members, members[name], files, shared, dataset).encode())


def _text(
    members: Members, member: Member, files: Mapping[str, Path], values: Mapping[str, Value], dataset: str
) -> str:
    path = files[member.name]
    described = f"{member.platform.description}; fitted to {dataset}"
    if member.fixed:  # made of the base: it has the fitted values from there
        extends = files[members.base.name].name
        values = {key: Value(text, f"fit: the rows of {member.name}") for key, text in member.fixed}
    else:
        extends = member.file if member.file in platform_names() else _beside(path, member.file)
    lines = [f"name = {_quoted(path.stem)}", f"description = {_quoted(described)}", f"extends = {_quoted(extends)}"]
    section = None
    for key, value in sorted(values.items()):
        above, _, last = key.rpartition(".")
        if above != section:
            lines += ["", f"[{above}]"]
            section = above
        lines.append(f"{last} = {to_toml(value.text)} # {value.source}")
    return "\n".join(lines) + "\n"


def _beside(path: Path, file: str) -> str:
    """The path of ``file`` as seen from the folder of ``path``."""
    return Path(os.path.relpath(file, path.parent)).as_posix()


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
