"""The words of blame: where a holder was, and waits behind holders or woken without a CPU."""

from __future__ import annotations

from collections.abc import Iterable

from locktop.collector.model import Blame, Contents, Kind
from locktop.collector.model.kinds import SIGNALLED_KINDS, WOKEN_KINDS
from locktop.collector.render.words.units import duration

_BY_WAKE = "as wakes of its waiters show"
_BY_POST = "as posts while threads waited show"
_COUNTED_ALONE = ("dormant", "counting")  # levels at which no holder is charged


def evidence(kind: Kind) -> str:
    """Return how the holders of such a lock are known, "" if they are observed."""
    if kind in SIGNALLED_KINDS:
        return _BY_POST
    return _BY_WAKE if kind in WOKEN_KINDS else ""


def site_verb(kind: Kind) -> str:
    """Return what a holder of such a lock did at the site of its blame."""
    return "posted" if kind in SIGNALLED_KINDS else "released" if kind in WOKEN_KINDS else "taken"


def deed(kind: Kind) -> str:
    """Return the same as a deed of the holder."""
    if kind in SIGNALLED_KINDS:
        return "posted it"
    return "released it" if kind in WOKEN_KINDS else "took it"


def hand_over(kind: Kind | None) -> tuple[str, str]:
    """Return what a thread did that let a waiter go on: ``released it``, ``released``."""
    if kind in SIGNALLED_KINDS:
        return "posted it", "posted"
    return ("woke its waiters", "woken") if kind in WOKEN_KINDS else ("released it", "released")


def divided(
    blame: Iterable[tuple[Blame, float]],
    kind: Kind,
    snapshot: Contents,
    width: int | None = None,
) -> str:
    """Return the sentence, "" if all waits were behind holders or none was.

    Args:
        blame: the blame of the lock, each with its seconds.
        kind: the kind of the lock.
        snapshot: the scan.
        width: cells of a duration, None for text.
    """
    behind_s = unheld_s = 0.0
    for entry, wait_s in blame:
        if entry.is_unheld:
            unheld_s += wait_s
        else:
            behind_s += wait_s
    return divided_seconds(behind_s, unheld_s, kind, snapshot, width)


def divided_seconds(
    behind_s: float, unheld_s: float, kind: Kind, snapshot: Contents, width: int | None = None
) -> str:
    """Return the sentence of divided() for the seconds behind holders and without any."""
    if not behind_s or not unheld_s:
        return ""
    is_counted = snapshot.complete and snapshot.level not in _COUNTED_ALONE
    knows_holders = is_counted and kind not in WOKEN_KINDS
    rest = "woken and not yet running" if knows_holders else "without a known holder"
    return (
        f"of {duration(behind_s + unheld_s, width)} of waiting, {duration(behind_s, width)} behind"
        f" holders, {duration(unheld_s, width)} {rest}"
    )
