"""The function calls of a process as one JSON object. Times are seconds.

``functions`` is the list of functions, the largest own time first. ``nodes`` is the call tree in
depth-first order, each node with its depth (0: an outermost call).
"""

from __future__ import annotations

from typing import Any

from locktop.collector.extensions.calls.calls_profile import CallsProfile
from locktop.collector.extensions.calls.function_calls import (
    CallSum,
    FunctionSum,
    contexts,
    functions,
)
from locktop.collector.render.documents.call_tree_json import location_entry

FORMAT = "locktop.calls"
VERSION = 1


def document(profile: CallsProfile, flat: bool = False) -> dict[str, Any]:
    """Return the object; with ``flat`` without the tree."""
    calls = profile.calls
    traced_s = calls.traced_s
    whole: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "of": profile.title,
        "pid": profile.process.pid or None,
        "tid": profile.tid,
        "threads": list(calls.threads),
        "traced_s": traced_s,
        "too_deep": calls.too_deep,
        "left_out": calls.left_out,
        "unmatched": calls.unmatched,
        "functions": [
            {**_figures(function), "share": _share(function.own_s, traced_s)}
            for function in functions(calls.root)
        ],
    }
    if flat:
        return whole
    nodes = [
        {
            "depth": context.depth,
            **_figures(context.node),
            "share": _share(context.node.total_s, traced_s),
        }
        for context in contexts(calls.root)
    ]
    return whole | {"nodes": nodes}


def _figures(entry: CallSum | FunctionSum) -> dict[str, Any]:
    return {
        "function": entry.step.name,
        "module": entry.step.module,
        "place": location_entry(entry.location),
        "count": entry.count,
        "total_s": entry.total_s,
        "own_s": entry.own_s,
        "wait_s": entry.wait_s,
        "short_count": entry.short_count,
        "active": entry.active,
    }


def _share(part: float, whole: float) -> float:
    return min(part / whole, 1.0) if whole > 0 else 0.0
