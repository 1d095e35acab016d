"""Where the waiting comes from, as one JSON object.

``nodes`` is the tree in depth-first order, each node with its depth (0: an entry). Times are
seconds; values of a report of another profiler are as it has them.
"""

from __future__ import annotations

from typing import Any

from locktop.collector.render.profiles.call_tree import Butterfly, Node, SourceLine, Step, Wing
from locktop.collector.render.profiles.profile import Profile, Weight

VERSION = 1


def document(
    profile: Profile, weight: Weight, idle: bool, step: Step | None = None
) -> dict[str, Any]:
    """Return the object: the tree, or of ``step`` the butterfly; with ``idle`` also with what was
    only waited for work."""
    root = profile.tree(weight.name)
    whole: dict[str, Any] = {
        "format": f"locktop.{profile.name}",
        "version": VERSION,
        "of": profile.title,
        "pid": profile.process.pid or None,
        "weight": weight.name,
        "unit": str(weight.unit) or None,
        "estimate": profile.estimate,
        "value": root.value,
        "idle": root.idle,
        "notes": list(profile.notes(weight.name)),
    }
    if step is None:
        return whole | {"nodes": node_entries(root, idle)}
    return whole | {"butterfly": _butterfly(profile.butterfly(weight.name, step), root.value, idle)}


def node_entries(root: Node, idle: bool) -> list[dict[str, Any]]:
    """Return the nodes of a tree in depth-first order; with ``idle`` also those of idle waits."""
    entries = []
    line = [(0, child) for child in reversed(root.children)]
    while line:
        depth, node = line.pop()
        if not (node.value > 0 or (idle and node.idle > 0)):
            continue
        entries.append(
            {
                "depth": depth,
                **_figures(node, root.value),
                "own": node.own,
                "own_idle": node.own_idle,
                "inlined": node.inlined,
                "again": node.again,
            }
        )
        line += [(depth + 1, child) for child in reversed(node.children)]
    return entries


def _butterfly(butterfly: Butterfly, whole: float, idle: bool) -> dict[str, Any]:
    return {
        **_figures(butterfly, whole),
        "own": butterfly.own,
        "own_idle": butterfly.own_idle,
        "callers": _wings(butterfly.callers, whole, idle),
        "callees": _wings(butterfly.callees, whole, idle),
    }


def _wings(wings: tuple[Wing, ...], whole: float, idle: bool) -> list[dict[str, Any]]:
    return [
        {**_figures(wing, whole), "inlined": wing.inlined}
        for wing in wings
        if wing.value > 0 or (idle and wing.idle > 0)
    ]


def _figures(node: Node | Wing | Butterfly, whole: float) -> dict[str, Any]:
    return {
        "function": node.step.name,
        "module": node.step.module,
        "part": str(node.step.kind),
        "place": location_entry(node.location),
        "value": node.value,
        "share": node.value / whole if whole > 0 else 0.0,
        "idle": node.idle,
        "estimate": node.estimate,
    }


def location_entry(line: SourceLine | None) -> dict[str, Any] | None:
    """Return a line of the source."""
    return {"file": line.file, "line": line.line} if line is not None else None
