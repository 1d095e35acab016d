"""The first lines of the details: what is wrong with a lock or a thread, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator

from locktop.collector.model import (
    ActivityState,
    DeadlockReport,
    Lock,
    Pattern,
    Thread,
)
from locktop.collector.render.words import activity, deadlock, elsewhere, hang
from locktop.collector.render.words.misuse import misuse_sentence
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.verdict import long_hang
from locktop.tui.views.cells import counted, held_text, lasting
from locktop.tui.views.detail_parts import labelled, stack_of
from locktop.tui.views.styled_line import Fold, Line, make_line

#: Seconds. A shorter hold or wait of a holder is over before anybody reads of it.
_MIN_S = 0.1


def lock_findings(index: SnapshotIndex, lock: Lock) -> Iterator[Line]:
    """The findings about a lock, each with its advice; none of a lock without a finding."""
    stuck = list(_deadlocks(index, lambda report: lock.id in report.locks))
    stuck = stuck or list(_hang(index, frozenset(lock.waiters)))
    patterns = list(pattern_findings(index, (lock.id,)))
    yield from (*stuck, *patterns)
    if not stuck and not patterns:
        yield from _blocked_or_busy_holder(index, lock)
    yield from _holder_elsewhere(index, lock)
    yield from _misuses(index, lock)


def thread_findings(index: SnapshotIndex, thread: Thread) -> Iterator[Line]:
    """The findings about a thread: what it waits for, or what others wait for because of it."""
    tid, wait = thread.tid, thread.waiting_for
    stuck = list(
        _deadlocks(
            index,
            lambda report: any(
                tid in (other.tid for other in group) for group in (report.circle, report.behind)
            ),
        )
    )
    yield from stuck or _hang(index, frozenset({tid}))
    locks = [held.lock for held in thread.holds] + ([wait.lock] if wait is not None else [])
    patterns = [
        pattern
        for pattern in index.snapshot.patterns
        if tid in pattern.tids or pattern.lock in locks
    ]
    for pattern in patterns:
        name = f" at {index.lock_name(pattern.lock)}" if pattern.lock else ""
        yield from _pattern(pattern, name)
    if stuck or patterns:
        return
    for id_ in locks:
        if id_ in index.locks:
            yield from _blocked_or_busy_holder(index, index.locks[id_])


def pattern_findings(index: SnapshotIndex, locks: Container[int]) -> Iterator[Line]:
    """Each contention pattern of these locks, with its evidence and advice."""
    for pattern in index.snapshot.patterns:
        if pattern.lock and pattern.lock in locks:
            yield from _pattern(pattern)


def advice_line(text: str) -> Line:
    """The line that says what to do."""
    return labelled("advice", text)


def _pattern(pattern: Pattern, whose: str = "") -> Iterator[Line]:
    yield make_line((f" {pattern.name.heading}{whose}: ", "waiting"), pattern.evidence)
    yield advice_line(pattern.advice)


def _deadlocks(index: SnapshotIndex, is_about: Callable[[DeadlockReport], bool]) -> Iterator[Line]:
    for report in index.deadlock_reports:
        if is_about(report):
            what, _, rest = deadlock.headline(report).partition(":")
            yield make_line(
                (f" {what.capitalize()}", "stuck"), f":{rest}", ("  d", "key"), " shows it"
            )
            yield advice_line(deadlock.advice(report))


def _hang(index: SnapshotIndex, tids: frozenset[int]) -> Iterator[Line]:
    """The hang of the whole process, if one of these threads is in it."""
    hung = long_hang(index.snapshot)
    if hung is None or tids.isdisjoint(hung.tids):
        return
    unless = f", unless {hung.doubt}" if hung.doubt else ""
    title = "Hang" if hung.certain else "Possible hang"
    yield make_line((f" {title}: ", "stuck"), f"{hang.whom(index.snapshot)}{unless}")
    for group in hang.groups(index.snapshot):
        if any(thread.tid in tids for thread in group.threads):
            yield make_line("   ", (hang.part(group), "strong"))
    if hung.certain:
        yield advice_line(hang.REMEDY)


def _blocked_or_busy_holder(index: SnapshotIndex, lock: Lock) -> Iterator[Line]:
    """The finding that the holder waits itself, or runs, while others wait for long."""
    holder = index.threads.get(lock.holders[0]) if lock.waiters and lock.holders else None
    if holder is None:
        return
    name, held = index.thread_name(holder.tid), index.held(holder.tid, lock.id)
    wait = holder.waiting_for
    if wait is not None:
        if wait.duration_s >= _MIN_S and not wait.idle:
            other = index.lock_name(wait.lock)
            yield make_line(
                (f" Behind {other}: ", "waiting"),
                f"{name}, which has {index.lock_name(lock.id)}, has waited"
                f" {lasting(wait.duration_s, wait.is_lower_bound)} for it",
            )
            yield advice_line(f"Look at {other} first: its holder keeps all of these.")
        return
    now = lock.holder_activity
    if now is None or now.tid != holder.tid or now.doing is not ActivityState.RUNNING:
        return
    if held is not None and held.duration_s is not None and held.duration_s >= _MIN_S:
        yield make_line(
            (" Long hold: ", "waiting"),
            f"{name} has held {index.lock_name(lock.id)} for {held_text(held)} and is"
            f" {activity.doing(now, holder.tid)}; {counted(len(lock.waiters), 'thread')} waiting",
        )
        yield advice_line("Do less while it is held: I shows what runs inside.")


def _holder_elsewhere(index: SnapshotIndex, lock: Lock) -> Iterator[Line]:
    """The holder in another process, if it is known what to do about it."""
    for tid in lock.holders:
        other = index.threads_elsewhere.get(tid)
        if other is not None and (advice := elsewhere.advice(other, lock)):
            yield make_line((" Another process has it: ", "waiting"), elsewhere.full_name(other))
            yield advice_line(advice)


def _misuses(index: SnapshotIndex, lock: Lock) -> Iterator[Line]:
    """Each misuse of the lock; its stack is inside."""
    for misuse in index.snapshot.misuses:
        if misuse.lock == lock.id:
            sentence = misuse_sentence(misuse, index.thread_name, index.lock_name)
            after = (("Against the rules: ", "waiting"), (sentence, "text"))
            yield Fold((), after, stack_of(index, misuse.stack, 0))
