"""Predictions as one JSON object. Ratios are multiples of the throughput now."""

from __future__ import annotations

from typing import Any

from locktop.collector.format import whatif as sentences
from locktop.collector.model import Prediction, Snapshot, UnitKind, WhatIf

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
        "predictions": [_prediction(one, names) for one in found.predictions],
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


def _prediction(one: Prediction, names: dict[int, str]) -> dict[str, Any]:
    return {
        "kind": str(one.change.kind),
        "amount": one.change.amount,
        "lock": one.change.lock or None,
        "name": names.get(one.change.lock) if one.change.lock else None,
        "group": one.change.group or None,
        "text": sentences.change(one.change, names),
        "ratio": one.ratio,
        "low": one.low,
        "high": one.high,
        "bound": one.bound,
    }
