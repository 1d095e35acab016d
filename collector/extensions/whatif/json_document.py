"""Predictions as one JSON object. Ratios are multiples of the throughput now."""

from __future__ import annotations

from typing import Any

from locktop.collector.extensions.whatif import sentences
from locktop.collector.extensions.whatif.model import Change, UnitKind, WhatIf
from locktop.collector.model import Snapshot

FORMAT = "locktop.whatif"
VERSION = 1


def document(found: WhatIf, snapshot: Snapshot) -> dict[str, Any]:
    """Return the object; ``snapshot``: names the process and, of older predictions, the locks."""
    names = sentences.lock_names(found, snapshot)
    return {
        "format": FORMAT,
        "version": VERSION,
        "pid": snapshot.process.pid,
        "comm": snapshot.process.comm,
        "taken_at": found.taken_at or snapshot.taken_at,
        "duration_s": found.span_s,
        "parts": found.parts,
        "throughput": {
            "per_s": found.rounds_per_s,
            "kind": str(found.unit.kind),
            "lock": found.unit.lock or None,
            "mark": found.unit.mark if found.unit.kind is UnitKind.MARKS else None,
            "unit": sentences.rounds(found, names),
        },
        "replayed": found.replayed,
        "refusal": str(found.refusal) if found.refusal is not None else None,
        "why": sentences.refusal(found) or None,
        "cpus": found.cpus,
        "cpus_used": found.cpus_used,
        "recording_cost": found.recording_cost,
        "predictions": [
            _change(one.change, names)
            | {"ratio": one.ratio, "low": one.low, "high": one.high, "bound": one.bound}
            for one in found.predictions
        ],
        "refused": [
            _change(one.change, names)
            | {"reason": str(one.reason), "sentence": sentences.reason(one.reason, found)}
            for one in found.refused
        ],
        "pressure": [
            {
                "lock": one.lock,
                "name": names.get(one.lock, ""),
                "wait_share": one.wait_share,
                "wait_shares": list(one.wait_shares),
                "path_share": one.path_share,
            }
            for one in found.pressure
        ],
        "notes": sentences.notes(found),
    }


def _change(one: Change, names: dict[int, str]) -> dict[str, Any]:
    return {
        "kind": str(one.kind),
        "amount": one.amount,
        "lock": one.lock or None,
        "name": names.get(one.lock) if one.lock else None,
        "group": one.group or None,
        "text": sentences.change(one, names),
    }
