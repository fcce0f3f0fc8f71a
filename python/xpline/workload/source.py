"""YAML with its lines: what is wrong is said with the file, the line and the key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml
from yaml import MappingNode, Node, ScalarNode, SequenceNode

from xpline.errors import XplineError

#: A workload file is written by hand; what is longer is something else.
_LONGEST = 1 << 20


class Place:
    """A value of a workload file: where it stands, under which keys, and what is written there."""

    def __init__(self, file: str, node: Node, keys: tuple[str, ...] = ()) -> None:
        self.file = file
        self.node = node
        self.keys = keys

    @property
    def key(self) -> str:
        """The innermost key."""
        return self.keys[-1]

    @property
    def text(self) -> str:
        """A single value as it is written."""
        if not isinstance(self.node, ScalarNode):
            raise self.error(f"is {self._kind}; expected a single value")
        return self.node.value

    def items(self) -> Iterator[Place]:
        """The values of a list."""
        if not isinstance(self.node, SequenceNode):
            raise self.error(f"is {self._kind}; expected a list, such as [64, 256]")
        if not self.node.value:
            raise self.error("is an empty list; expected at least one value")
        return (Place(self.file, node, self.keys) for node in self.node.value)

    def entries(self) -> dict[str, Place]:
        """The values of a mapping by their keys."""
        if not isinstance(self.node, MappingNode):
            raise self.error(f"is {self._kind}; expected keys with values")
        found: dict[str, Place] = {}
        for key, value in self.node.value:
            if not isinstance(key, ScalarNode):
                raise Place(self.file, key, self.keys).error("has a key that is not a name")
            entry = Place(self.file, value, (*self.keys, key.value))
            if key.value in found:
                raise entry.error("is given twice", key.start_mark.line)
            found[key.value] = entry
        return found

    def error(self, problem: str, line: int | None = None) -> XplineError:
        """An error about this value."""
        line = self.node.start_mark.line if line is None else line
        name = ".".join(self.keys)
        value = f" = {_short(self.node.value)}" if isinstance(self.node, ScalarNode) and self.keys else ""
        return XplineError(f"{self.file}:{line + 1}: {name}{value}{': ' if name else ''}{problem}")

    @property
    def _kind(self) -> str:
        if isinstance(self.node, MappingNode):
            return "a mapping"
        return "a list" if isinstance(self.node, SequenceNode) else "a single value"


def load(path: Path) -> Place:
    """The root of a workload file."""
    try:
        if path.stat().st_size > _LONGEST:
            raise XplineError(f"{path}: over 1 MiB; a workload file is a few lines of YAML")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise XplineError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise XplineError(f"{path}: not text in UTF-8; a workload file is YAML") from error
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise XplineError(f"{path}:{line}: not valid YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise XplineError(f"{path}:1: not valid YAML: {str(error).splitlines()[0]}") from error
    if root is None:
        raise XplineError(f"{path}:1: empty; expected benchmarks by name")
    return Place(str(path), root)


def _short(text: str) -> str:
    line = text.splitlines()[0] if text else "nothing"
    return line if len(line) <= 60 else f"{line[:60]}..."
