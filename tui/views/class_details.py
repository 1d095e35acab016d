"""The details of a class of locks: sums, the spread of the wait over the locks, stacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from locktop.collector.model import Lock, LockClass, Thread
from locktop.collector.render.words.lock_kind import kind_word
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views.cells import bar, counted, duration, exact, percent
from locktop.tui.views.detail_parts import blank, heading, labelled, latest_events
from locktop.tui.views.findings import pattern_findings, stuck_findings, wait_findings
from locktop.tui.views.histogram import histogram_lines
from locktop.tui.views.holder_lines import (
    has_holder,
    holder_label,
    most_common,
    unproven_holder,
)
from locktop.tui.views.lock_details import blamed, figures, longest_hold, waited_here, waits_at
from locktop.tui.views.styled_line import Line, Span, make_line
from locktop.tui.views.subject_graphs import LastMinutes, lock_graphs

_MAX_NAMED = 3
_WORST = 5
_BAR = 10


def class_details(
    index: SnapshotIndex, lock_class: LockClass, minutes: LastMinutes | None = None
) -> Iterator[Line]:
    """The lines of the details panel for a class; ``minutes``: for the graphs."""
    locks, ids = index.members(lock_class), frozenset(lock_class.locks)
    destroyed = f", {exact(lock_class.destroyed)} of them destroyed" if lock_class.destroyed else ""
    yield make_line(
        (f" {lock_class.name}", "strong"),
        f"  {kind_word(lock_class.kind, lock_class.name)}"
        f"  {exact(len(lock_class.locks))} locks{destroyed}",
        ("  Right", "key"),
        (" shows them", "dim"),
    )
    findings = stuck_findings(index, ids, lock_class.waiters)
    findings += pattern_findings(index, ids)
    waiters = [thread for thread in index.waiting if _lock_of_wait(thread) in ids]
    yield from findings
    worst = index.locks.get(_lock_of_wait(waiters[0])) if waiters else None
    if worst is not None and not findings:
        yield from wait_findings(index, worst, waiters)
    named = index.holder_of(worst) if worst is not None and not lock_class.holders else None
    if worst is not None and named is not None:
        yield labelled(holder_label(worst), *unproven_holder(index, worst, named))
    elif any(map(has_holder, locks)):
        held = sum(bool(lock.holders) for lock in locks)
        # Where threads wait, some thread holds the lock, also if it is not known.
        hidden = index.dormant or any(lock.waiters and not lock.holders for lock in locks)
        yield labelled("held by", *_these(hidden, held, lock_class.holders, index, "holder"))
    waited = sum(bool(lock.waiters) for lock in locks)
    in_code = most_common([waits_at(index, tid) for tid in lock_class.waiters], "in ")
    yield labelled(
        "waiters", *_these(index.dormant, waited, lock_class.waiters, index, "strong"), *in_code
    )
    yield from lock_graphs(minutes, ids)
    yield from figures(index, lock_class, ids)
    yield from _spread(index, lock_class, locks)
    yield from blamed(index, index.class_blame(lock_class), lock_class.kind)
    wait_max_s, hold_max_s = lock_class.wait_max_s, lock_class.hold_max_s
    waits, is_held = bool(waited), longest_hold(index, lock_class, ids) is not None
    yield from histogram_lines("Waits", lock_class.wait_histogram, wait_max_s, waits)
    yield from histogram_lines("Timed holds", lock_class.hold_histogram, hold_max_s, is_held)
    yield from waited_here(index, index.class_wait_stacks(lock_class))
    events = [event for event in index.snapshot.events if event.lock in ids]
    yield from latest_events(index, events, show_lock=False)


def _lock_of_wait(thread: Thread) -> int:
    """The id of the lock that a thread waits for; 0 for none."""
    return thread.waiting_for.lock if thread.waiting_for is not None else 0


def _these(
    hidden: bool, count: int, tids: Sequence[int], index: SnapshotIndex, style: str
) -> Iterator[Span | str]:
    """How many threads at how many of the locks, and the names of the first threads.

    Args:
        hidden: whether there may be others, which are not known.
        count: the number of locks.
        tids: the threads.
        index: the snapshot.
        style: of the names.
    """
    if not tids:
        yield ("not known" if hidden else "none", "dim")
        return
    yield f"{counted(len(tids), 'thread')} at {exact(count)} of the locks: "
    for number, tid in enumerate(tids[:_MAX_NAMED]):
        yield ", " if number else ""
        yield index.thread_name(tid), style
    if len(tids) > _MAX_NAMED:
        yield (f" and {len(tids) - _MAX_NAMED} more", "dim")


def _spread(index: SnapshotIndex, lock_class: LockClass, locks: Sequence[Lock]) -> Iterator[Line]:
    """Whether the threads wait for one lock or for each of them a little."""
    if lock_class.wait_s <= 0:
        return
    worst = sorted(locks, key=lambda lock: -lock.wait_s)
    waited = sum(lock.wait_s > 0 for lock in locks)
    tenth = -(-len(locks) // 10)
    share = percent(sum(lock.wait_s for lock in worst[:tenth]) / lock_class.wait_s)
    yield blank()
    yield heading(
        "Waited for  ",
        f"{exact(waited)} of {exact(len(locks))} locks; {share} of the wait at the worst "
        f"{exact(tenth)}",
    )
    for lock in worst[: min(_WORST, waited)]:
        part = lock.wait_s / lock_class.wait_s
        yield make_line(
            f"  {duration(lock.wait_s):>6} {percent(part):>4} ",
            (bar(part, _BAR), "waiting"),
            (f" {index.name_in_class(lock, lock_class)}", "strong"),
        )
