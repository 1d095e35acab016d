"""Deadlocks as a Mermaid flowchart, which many a ticket system and Markdown page draws."""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence

from locktop.collector.model import DeadlockReport
from locktop.collector.render.graph.deadlock_graph import Graph, GraphNode, Part, graph

#: Characters without a meaning for Mermaid, Markdown and HTML within quotes. Other characters are
#: written as their numbers.
_PLAIN = frozenset(string.ascii_letters + string.digits + " _.,:/+-=?")
_STYLES = (
    "  classDef circle fill:#f8d7da,stroke:#842029",
    "  classDef behind stroke-dasharray:4",
    "  classDef lock fill:#ffffff",
)


def render(reports: Iterable[DeadlockReport]) -> str:
    """Return the flowchart; where there is no deadlock it says so in its only node."""
    return render_graph(graph(reports))


def render_graph(diagram: Graph) -> str:
    """Return any graph of threads and locks."""
    lines = ["flowchart LR"]
    if not diagram.nodes:
        lines.append(f"  none[{quoted([diagram.title])}]")
    lines += [f"  {_node(node)}" for node in diagram.nodes]
    lines += [f"  {arrow.start} -->|{quoted(arrow.lines)}| {arrow.end}" for arrow in diagram.arrows]
    return "\n".join([*lines, *_STYLES]) + "\n"


def _node(node: GraphNode) -> str:
    text = quoted(node.lines)
    shape = f"([{text}])" if node.part is Part.LOCK else f"[{text}]"
    return f"{node.key}{shape}:::{node.part.value}"


def quoted(lines: Sequence[str]) -> str:
    """Return lines of a stranger's text as one quoted string."""
    return '"' + "<br>".join(map(_escape_line, lines)) + '"'


def _escape_line(line: str) -> str:
    """A line that begins with ``1.`` or ``-`` would be an item of a list, which Mermaid refuses."""
    return "".join(
        character
        if character in _PLAIN and (index or character.isalpha())
        else f"#{ord(character)};"
        for index, character in enumerate(line)
    )
