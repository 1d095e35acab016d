"""One sentence that divides the waits for a lock: behind holders, and woken without a CPU."""

from __future__ import annotations

from collections.abc import Iterable

from locktop.collector.model import Blame, Contents
from locktop.collector.render.words.units import duration

_COUNTED_ALONE = ("dormant", "counting")  # levels at which no holder is charged


def divided(
    blame: Iterable[tuple[Blame, float]], snapshot: Contents, width: int | None = None
) -> str:
    """Return the sentence, "" if all waits were behind holders or none was.

    Args:
        blame: the blame of the lock, each with its seconds.
        snapshot: the scan.
        width: cells of a duration, None for text.
    """
    behind_s = unheld_s = 0.0
    for entry, wait_s in blame:
        if entry.is_unheld:
            unheld_s += wait_s
        else:
            behind_s += wait_s
    return divided_seconds(behind_s, unheld_s, snapshot, width)


def divided_seconds(
    behind_s: float, unheld_s: float, snapshot: Contents, width: int | None = None
) -> str:
    """Return the sentence of divided() for the seconds behind holders and without any."""
    if not behind_s or not unheld_s:
        return ""
    knows_holders = snapshot.complete and snapshot.level not in _COUNTED_ALONE
    rest = "woken and not yet running" if knows_holders else "woken, or no holder known"
    return (
        f"of {duration(behind_s + unheld_s, width)} of waiting, {duration(behind_s, width)} behind"
        f" holders, {duration(unheld_s, width)} {rest}"
    )
