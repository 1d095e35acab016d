"""The note on waits that locktop divides among Python functions."""

from __future__ import annotations

from locktop.collector.render.words import units


def note(waits: int) -> str:
    """Return the note on an estimate; ``waits``: the number of waits on which it rests."""
    seen = units.counted(waits, "wait")
    return f"Python functions: an estimate from {seen} that locktop saw while they lasted"
