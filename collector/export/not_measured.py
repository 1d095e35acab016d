"""What a process that is sampled from outside does not tell: null, not a number that is false."""

from __future__ import annotations

from typing import Any

_OF_LOCKS = ("acquisitions", "trylock_failed", "signals", "unheard", "hold_s", "hold_max_s")
_KEYS = {
    "threads": ("acquisitions", "contended"),
    "locks": _OF_LOCKS,
    "lock_classes": _OF_LOCKS,
}


def marked(document: dict[str, Any]) -> dict[str, Any]:
    """Return the snapshot's document with null for each of these, in intervals too."""
    for part, keys in _KEYS.items():
        for entry in document[part]:
            for figures in (entry, entry.get("interval", {})):
                figures.update(dict.fromkeys(figures.keys() & set(keys)))
    return document
