"""The finding about a long wait for a lock that is over, in the details of the lock."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.model import CONTENTION_KINDS, Blame, Event, Lock
from locktop.collector.render.words import blame
from locktop.collector.render.words.snapshot_index import LONG_WAIT_S, SnapshotIndex
from locktop.tui.views.cells import duration
from locktop.tui.views.findings import advice_line
from locktop.tui.views.styled_line import Line, Span, make_line

_ADVICE = (
    "Do less while it is held. While locktop watches or records, { goes to such a wait, and shows"
    " what the holder does."
)


def past_wait(index: SnapshotIndex, lock: Lock) -> Iterator[Line]:
    """The longest wait for a lock that nobody waits for now, and who had it; none if it was short.

    Only a kind whose holders are known has one: a long wait for work is no finding.
    """
    held = [entry for entry in lock.blame if not entry.is_unheld]
    if lock.waiters or lock.idle or lock.kind not in CONTENTION_KINDS or not held:
        return
    if lock.wait_max_s < LONG_WAIT_S:
        return
    longest = max(_waits(index, lock), key=lambda event: event.wait_s, default=None)
    if longest is not None and longest.wait_s < LONG_WAIT_S:
        longest = None
    worst = max(held, key=lambda entry: (longest and entry.tid == longest.holder, entry.wait_s))
    yield make_line(
        (" Long wait, over: ", "waiting"),
        _who_waited(index, lock, longest),
        *_behind(index, lock, worst, longest),
    )
    yield advice_line(_ADVICE)


def _waits(index: SnapshotIndex, lock: Lock) -> Iterator[Event]:
    return (event for event in index.snapshot.events if event.lock == lock.id)


def _who_waited(index: SnapshotIndex, lock: Lock, longest: Event | None) -> str:
    if longest is None:
        return f"a thread waited {duration(lock.wait_max_s)} for it"
    ago = duration(max(longest.ago_s - longest.wait_s, 0.0))
    name = index.thread_name(longest.tid)
    return f"{name} waited {duration(longest.wait_s)} for it, until {ago} ago"


def _behind(
    index: SnapshotIndex, lock: Lock, worst: Blame, longest: Event | None
) -> Iterator[Span | str]:
    """The holder, where it took the lock, and the longest hold, which may be that of another."""
    is_of_longest = longest is not None and longest.holder == worst.tid
    yield ", behind " if is_of_longest else "; the waits were most of all behind "
    yield worst.holder_label or index.thread_name(worst.tid), "holder"
    if site := index.site(worst.site) if worst.site else "":
        yield f", which {blame.deed(lock.kind)} at "
        yield site, "where"
    if lock.hold_max_s:
        yield f"; the longest hold of all took {duration(lock.hold_max_s)}"
