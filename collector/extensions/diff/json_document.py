"""A comparison as one JSON object. Times are seconds."""

from __future__ import annotations

from typing import Any

from locktop.collector.extensions.diff import sentences
from locktop.collector.extensions.diff.model import FigureChange, LockChanges, Side, SideComparison
from locktop.collector.sanitize import clean

FORMAT = "locktop.diff"
VERSION = 1


def document(comparison: SideComparison) -> dict[str, Any]:
    """Return the object, with all locks and changes."""
    is_marked = comparison.transaction is not None
    return {
        "format": FORMAT,
        "version": VERSION,
        "changed": comparison.has_changes,
        "sentences": list(sentences.headlines(comparison)),
        "a": _side(comparison.before),
        "b": _side(comparison.after),
        "transaction": sentences.transaction_name(comparison) if is_marked else None,
        "totals": [_change(change) for change in comparison.totals.changes],
        "locks": [_lock(lock) for lock in comparison.locks],
        "new": [_lock(lock) for lock in comparison.new],
        "gone": [_lock(lock) for lock in comparison.gone],
        "notes": list(sentences.notes(comparison)),
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "title": clean(side.title),
        "pid": side.pid,
        "comm": clean(side.comm),
        "duration_s": side.duration_s,
        "pieces": len(side.pieces),
        "sampled": side.is_sampled,
    }


def _lock(lock: LockChanges) -> dict[str, Any]:
    assert lock.key is not None
    return {
        "name": lock.name,
        "kind": str(lock.key.kind),
        "count": {"a": lock.counts[0], "b": lock.counts[1]},
        "changes": [_change(change) for change in lock.changes],
    }


def _change(change: FigureChange) -> dict[str, Any]:
    between = change.interval
    return {
        "measure": str(change.measure),
        "per": _per(change),
        "a": change.before,
        "b": change.after,
        "ratio": change.ratio,
        "interval": [between.low, between.high] if between is not None else None,
        "pieces": {"a": between.pieces[0], "b": between.pieces[1]} if between else None,
        "changed": change.is_worth_a_line,
    }


def _per(change: FigureChange) -> str:
    if change.is_per_transaction:
        return "transaction"
    return "use" if change.is_mean else "second"
