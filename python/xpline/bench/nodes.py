"""Where threads and memory are: on socket 0, on socket 1, or on both."""

from __future__ import annotations

from itertools import product

from xpline.errors import XplineError
from xpline.values import Numbers, Words, words

#: What the platform's keys take; with both, threads, or pages of 4 KiB, take turns.
NODES = ("0", "1", "both")


def placements(cpu: Numbers | Words | None = None, memory: Numbers | Words | None = None) -> list[dict[str, object]]:
    """Overrides of a platform for each combination of sockets; None leaves the platform as it is.

    >>> placements(cpu=0, memory="0,1")
    [{'nodes.cpu': '0', 'nodes.memory': '0'}, {'nodes.cpu': '0', 'nodes.memory': '1'}]
    >>> placements()
    [{}]
    """
    wanted = {"nodes.cpu": _nodes(cpu, "cpu_node"), "nodes.memory": _nodes(memory, "mem_node")}
    asked = {key: nodes for key, nodes in wanted.items() if nodes}
    return [dict(zip(asked, nodes, strict=True)) for nodes in product(*asked.values())]


def _nodes(nodes: Numbers | Words | None, name: str) -> list[str]:
    if nodes is None:
        return []
    listed = words([str(nodes)] if isinstance(nodes, int | str) else map(str, nodes), name)
    for node in listed:
        if node not in NODES:
            raise XplineError(f"{name} = {node}: no socket; use {', '.join(NODES)}")
    return listed
