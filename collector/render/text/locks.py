"""Sections of the text report: locks, semaphores and condition variables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from locktop.collector.analysis import lock_classes
from locktop.collector.model import SIGNALLED_KINDS, Kind, Lock, LockClass
from locktop.collector.render.text.context import (
    ReportContext,
    Row,
    add_type,
    table,
    waiting_count,
)
from locktop.collector.render.words import activity, probable_holder, readers, units
from locktop.collector.render.words.lock_kind import kind_word, name_without_kind

_MAX_LOCKS = 20
_HEADINGS = ("wait", "waited", "max wait", "taken", "held", "kind", "lock")
_NO_WAIT_SEEN = "LOCKS: no thread waited for a mutex or rwlock"
#: Headings with -d. The longest wait is known only since the process started.
_HEADINGS_OF_AN_INTERVAL = (
    "wait", "waited", "max since start", "taken", "held", "kind", "lock",
)  # fmt: skip
_PERCENTILE_HEADINGS = ("wait p50", "wait p99", "hold p50", "hold p99", "kind", "lock")
_SIGNAL_HEADINGS = ("waiting", "longest", "signals", "kind", "lock")
_SIGNAL_HEADINGS_OF_AN_INTERVAL = (
    "waiting", "longest", "signals", "since start", "kind", "lock",
)  # fmt: skip


def lock_table(context: ReportContext) -> Iterator[str]:
    """Yield the locks with contention, most wait first."""
    locks = context.rows_with_waits()
    rows = [_lock_row(context, lock) for lock in locks]
    if not rows:
        yield _NO_WAIT_SEEN
    else:
        sampled = context.snapshot.is_sampled
        whole = "while it was sampled" if sampled else "since the process started"
        when = "in this time" if context.before is not None else whole
        yield f"LOCKS, most wait first, {when}"
        yield from table(_HEADINGS if context.before is None else _HEADINGS_OF_AN_INTERVAL, rows)
    yield from _other_waits(context)
    yield from _percentiles(context, locks)


def _percentiles(context: ReportContext, locks: Iterable[Row]) -> Iterator[str]:
    """Yield how long half of the waits and holds were at most, and 99 of 100."""
    figures = [(lock, context.figures(lock)) for lock in locks]
    rows: list[tuple[str, ...]] = [
        (
            units.duration(row.wait_p50_s),
            units.duration(row.wait_p99_s),
            units.duration(row.hold_p50_s),
            units.duration(row.hold_p99_s),
            kind_word(lock.kind, lock.name),
            _name(lock),
        )
        for lock, row in figures
        if row.wait_p50_s is not None or row.hold_p50_s is not None
    ]
    if rows:
        yield from ("", "LENGTHS of waits and of timed holds")
        yield from table(_PERCENTILE_HEADINGS, rows)


def _other_waits(context: ReportContext) -> Iterator[str]:
    """Yield the idle waits by kind. The holder of a semaphore is seldom known."""
    waited: dict[Kind, float] = {}
    for lock in context.snapshot.locks:
        if lock.idle_s:
            waited[lock.kind] = waited.get(lock.kind, 0.0) + context.figures(lock).idle_s
    most_first = sorted(waited.items(), key=lambda entry: -entry[1])
    listed = ", ".join(f"{kind} {units.duration(time)}" for kind, time in most_first if time)
    if listed:
        yield f"  waits without a known holder, or for work: {listed}"


def _lock_row(context: ReportContext, lock: Row) -> tuple[str, ...]:
    figures = context.figures(lock)
    # Of a sampled lock ``contended`` has the waits in samples, not the acquisitions that waited.
    waited, none = (0, "-") if context.snapshot.is_sampled else (figures.contended, "0")
    error_s = math.hypot(*(member.wait_error_s for member in context.members(lock)))
    return (
        units.duration(context.contention_s(lock))
        + f" +-{units.duration(error_s)}" * (error_s > 0),
        str(waited) if waited else waiting_count(lock) or none,
        _longest_wait(lock),
        _number(figures.acquisitions),
        _hold_time(context, lock),
        kind_word(lock.kind, lock.name),
        _describe(context, lock, bool(waited)),
    )


def _longest_wait(lock: Row) -> str:
    if not lock.wait_max_is_lower_bound:
        return units.duration(lock.wait_max_s)
    return f">{units.duration(lock.wait_max_s)}" if lock.wait_max_s else "-"


def _hold_time(context: ReportContext, lock: Row) -> str:
    """Return how long threads held a lock: "-" where that is not known.

    The figures lack present holds that are not timed, of which a lower bound may be known.
    """
    figures = context.figures(lock)
    is_known = lock.hold_timed or figures.hold_s or not lock.acquisitions
    figures_s = figures.hold_s if is_known else None
    ids = {member.id for member in context.members(lock)}
    holders = (context.threads.get(tid) for tid in lock.holders)
    bounds = [
        held.duration_s or 0.0
        for thread in holders
        if thread is not None
        for held in thread.holds
        if held.lock in ids and held.is_lower_bound
    ]
    if not bounds or context.before is not None:
        return units.duration(figures_s)
    return f">{units.duration((figures_s or 0.0) + sum(bounds))}"


def _number(figure: int | None) -> str:
    return "-" if figure is None else str(figure)


def _name(lock: Row) -> str:
    return name_without_kind(lock.kind, lock.name)


def _describe(context: ReportContext, lock: Row, with_waiters: bool) -> str:
    parts = [_name(lock)]
    if isinstance(lock, LockClass):
        return ", ".join([*parts, *_class_lines(context, lock, with_waiters)])
    parts[0] = add_type(lock, parts[0])
    if lock.holders:
        doubt = " (not certain)" if lock.foreign_releases else ""
        parts.append(f"held by {context.threads_named(lock.holders)}{doubt}")
        parts += _holder_does(context, lock)
    elif probable := probable_holder.tids(lock):
        names = context.threads_named(probable)
        parts.append(probable_holder.phrase(lock, names, context.snapshot.sites))
    elif held := readers.phrase(lock):
        parts.append(f"held by {held}")
    elif with_waiters and (likely := context.likely_holder(lock)):
        parts.append(f"holder not known{likely}")
    if with_waiters and lock.waiters:
        parts.append(waiting_count(lock))
    return ", ".join(parts)


def _holder_does(context: ReportContext, lock: Lock) -> Iterator[str]:
    now = lock.holder_activity
    doing = activity.doing(now, now.tid) if now is not None else ""
    if now is not None and doing:
        who = f"{context.thread(now.tid)} is " if len(lock.holders) > 1 else "which is now "
        yield who + doing


def _class_lines(
    context: ReportContext, lock_class: LockClass, with_waiters: bool
) -> Iterator[str]:
    """Yield how many locks the class has, and the lock with most wait."""
    destroyed = f" ({lock_class.destroyed} destroyed)" if lock_class.destroyed else ""
    yield f"{units.counted(len(lock_class.locks), 'lock')}{destroyed}"
    if with_waiters and lock_class.waiters:
        yield waiting_count(lock_class)
    worst = max(context.members(lock_class), key=context.contention_s)
    wait_s = context.contention_s(worst)
    if not wait_s:
        return
    single = lock_classes.name_in_class(worst, lock_class).removeprefix("at ")
    yield f"the worst {single} with {units.duration(wait_s)}"
    if worst.holders:
        yield f"held by {context.threads_named(worst.holders)}"


def signal_table(context: ReportContext) -> Iterator[str]:
    """Yield the semaphores and conditions with waiters, and how often they were signalled."""
    waited = context.rows_of(
        lock for lock in context.snapshot.locks if lock.kind in SIGNALLED_KINDS and lock.waiters
    )
    if not waited:
        return
    waited.sort(key=lambda lock: -len(lock.waiters))
    yield ""
    yield (
        f"SEMAPHORES AND CONDITIONS WAITED FOR {context.when},"
        " and how often this process signalled them"
    )
    headings = _SIGNAL_HEADINGS if context.before is None else _SIGNAL_HEADINGS_OF_AN_INTERVAL
    yield from table(headings, [_signal_row(context, lock) for lock in waited[:_MAX_LOCKS]])
    if len(waited) > _MAX_LOCKS:
        yield f"  and {len(waited) - _MAX_LOCKS} more"


def _signal_row(context: ReportContext, lock: Row) -> tuple[str, ...]:
    threads = (context.threads.get(tid) for tid in lock.waiters)
    waits = [thread.waiting_for for thread in threads if thread and thread.waiting_for]
    longest = max(waits, key=lambda wait: wait.duration_s, default=None)
    count = f", {units.counted(len(lock.locks), 'lock')}" if isinstance(lock, LockClass) else ""
    since_start = () if context.before is None else (_number(lock.signals),)
    return (
        str(len(lock.waiters)),
        "-"
        if longest is None
        else f"{'>' * longest.is_lower_bound}{units.duration(longest.duration_s)}",
        _number(context.figures(lock).signals),
        *since_start,
        kind_word(lock.kind, lock.name),
        name_without_kind(lock.kind, lock.name) + count,
    )
