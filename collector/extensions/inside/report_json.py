"""The functions that run inside a lock, as one JSON object.

``functions`` has the samples of each function. ``nodes`` has the tree in depth-first order. A node
of depth 0 is a call that took the lock. Times are seconds.
"""

from __future__ import annotations

from typing import Any

from locktop.collector.extensions.inside.inside_tree import FunctionShare, inside
from locktop.collector.extensions.inside.model import inside_of, profile_of
from locktop.collector.model import Lock, Snapshot
from locktop.collector.render.documents.call_tree_json import location_entry, node_entries

FORMAT = "locktop.inside"
VERSION = 1


def document(snapshot: Snapshot, lock: Lock) -> dict[str, Any]:
    """Return the object of one lock of a snapshot with a profile."""
    profile, of_lock = profile_of(snapshot), inside_of(snapshot, lock.id)
    assert profile is not None
    tree = inside(snapshot, of_lock.stacks if of_lock is not None else ())
    return {
        "format": FORMAT,
        "version": VERSION,
        "pid": snapshot.process.pid,
        "comm": snapshot.process.comm,
        "taken_at": snapshot.taken_at,
        "lock": {
            "id": lock.id,
            "name": lock.name,
            "kind": str(lock.kind),
            "address": hex(lock.address),
        },
        "duration_s": profile.duration_s,
        "period_s": profile.period_s,
        "samples": tree.samples,
        "on_cpu": of_lock.on_cpu if of_lock is not None else 0,
        "share_held": of_lock.share if of_lock is not None else 0.0,
        "unjoined": profile.unjoined,
        "lost": profile.lost,
        "pressure": list(of_lock.pressure) if of_lock is not None else [],
        "pressure_slice_s": of_lock.pressure_slice_s if of_lock is not None else 0.0,
        "functions": [_function(function, tree.samples) for function in tree.functions],
        "nodes": node_entries(tree.root, idle=False),
        "notes": list(snapshot.notes),
    }


def _function(function: FunctionShare, samples: int) -> dict[str, Any]:
    return {
        "function": function.step.name,
        "module": function.step.module,
        "part": str(function.step.kind),
        "place": location_entry(function.location),
        "own": function.own,
        "total": function.total,
        "asleep": function.asleep,
        "own_share": function.own / samples,
        "total_share": function.total / samples,
    }
