"""Deadlocks in the language of Graphviz: ``dot -Tsvg``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from locktop.collector.model import DeadlockReport
from locktop.collector.render.graph.deadlock_graph import Graph, Part, graph

_STYLES = {
    Part.CIRCLE: 'shape=box, style="filled", fillcolor="#f8d7da"',
    Part.BEHIND: 'shape=box, style="dashed"',
    Part.LOCK: 'shape=box, style="rounded"',
}


def render(reports: Iterable[DeadlockReport]) -> str:
    """Return the graph, one without nodes where there is no deadlock."""
    return render_graph(graph(reports))


def render_graph(diagram: Graph) -> str:
    """Return any graph of threads and locks."""
    lines = ["digraph locktop {", f"  label={quoted([diagram.title])};"]
    lines += [
        f"  {node.key} [label={quoted(node.lines)}, {_STYLES[node.part]}];"
        for node in diagram.nodes
    ]
    lines += [
        f"  {arrow.start} -> {arrow.end} [label={quoted(arrow.lines)}];" for arrow in diagram.arrows
    ]
    return "\n".join([*lines, "}"]) + "\n"


def quoted(lines: Sequence[str]) -> str:
    """Return lines of a stranger's text as one quoted string. In a label a backslash begins an
    escape of dot (``\\N`` is the node's name), and an ampersand an entity."""
    escaped = (
        line.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;") for line in lines
    )
    return '"' + "\\n".join(escaped) + '"'
