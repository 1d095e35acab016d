"""Predictions as one JSON object. Ratios are multiples of the throughput now."""

from __future__ import annotations

from typing import Any

from locktop.collector.extensions.whatif import sentences
from locktop.collector.extensions.whatif.model import Change, UnitKind, WhatIf
from locktop.collector.model import Snapshot

FORMAT = "locktop.whatif"
VERSION = 1


def document(what_if: WhatIf, snapshot: Snapshot) -> dict[str, Any]:
    """Return the object; ``snapshot``: names the process and, of older predictions, the locks."""
    names = sentences.lock_names(what_if, snapshot)
    return {
        "format": FORMAT,
        "version": VERSION,
        "pid": snapshot.process.pid,
        "comm": snapshot.process.comm,
        "taken_at": what_if.taken_at or snapshot.taken_at,
        "duration_s": what_if.span_s,
        "parts": what_if.parts,
        "throughput": {
            "per_s": what_if.rounds_per_s,
            "kind": str(what_if.unit.kind),
            "lock": what_if.unit.lock or None,
            "mark": what_if.unit.mark if what_if.unit.kind is UnitKind.MARKS else None,
            "unit": sentences.rounds(what_if, names),
        },
        "replayed": what_if.replayed,
        "refusal": str(what_if.refusal) if what_if.refusal is not None else None,
        "changed_at": what_if.changed_at,
        "stuck": what_if.stuck,
        "why": sentences.refusal(what_if) or None,
        "cpus": what_if.cpus,
        "cpus_used": what_if.cpus_used,
        "recording_cost": what_if.recording_cost,
        "predictions": [
            _change(prediction.change, names)
            | {
                "ratio": prediction.ratio,
                "low": prediction.low,
                "high": prediction.high,
                "bound": prediction.bound,
            }
            for prediction in what_if.predictions
        ],
        "refused": [
            _change(refused.change, names)
            | {"reason": str(refused.reason), "sentence": sentences.reason(refused.reason, what_if)}
            for refused in what_if.refused
        ],
        "pressure": [
            {
                "lock": share.lock,
                "name": names.get(share.lock, ""),
                "wait_share": share.wait_share,
                "wait_shares": list(share.wait_shares),
                "path_share": share.path_share,
            }
            for share in what_if.pressure
        ],
        "notes": sentences.notes(what_if),
    }


def _change(change: Change, names: dict[int, str]) -> dict[str, Any]:
    return {
        "kind": str(change.kind),
        "amount": change.amount,
        "lock": change.lock or None,
        "name": names.get(change.lock) if change.lock else None,
        "group": change.group or None,
        "text": sentences.change(change, names),
    }
