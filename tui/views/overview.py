"""The overview: the health of the process, where time goes, the worst lock, the longest chain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from locktop.collector.model import Lock, Notable, Thread, ThreadState, TimeSplit
from locktop.collector.render.words import hang, lock_order
from locktop.collector.render.words.lock_kind import kind_word
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.units import counted
from locktop.collector.render.words.verdict import long_hang
from locktop.tui.views.banner import no_deadlock
from locktop.tui.views.cells import duration, lasting
from locktop.tui.views.detail_parts import blank, heading, labelled
from locktop.tui.views.headline import most_waited_now
from locktop.tui.views.lock_list import holder_activity_span
from locktop.tui.views.past_flag import clock_text
from locktop.tui.views.styled_line import Line, Span, make_line
from locktop.tui.views.thread_list import state_word
from locktop.tui.views.time_bar import time_bar, time_words

_MAX_ROWS = 5
_BAR_WIDTH = 24
_NAME_WIDTH = 28
_DORMANT = "waits are not known: the library is dormant"


def overview_lines(index: SnapshotIndex, alerts: Sequence[Notable], width: int) -> Iterator[Line]:
    """The lines of the overview.

    Args:
        index: the snapshot.
        alerts: the deadlocks and long waits of the past, the oldest first.
        width: cells.
    """
    yield from _health(index)
    yield blank()
    yield from _time(index)
    yield blank()
    yield from _worst_lock(index)
    yield blank()
    yield from _longest_chain(index)
    yield blank()
    yield from _locks(index)
    yield blank()
    yield from _alerts(alerts)


def _health(index: SnapshotIndex) -> Iterator[Line]:
    snapshot = index.snapshot
    certain = sum(deadlock.certain for deadlock in index.deadlocks)
    possible = len(index.deadlocks) - certain
    potential = len(lock_order.not_there(snapshot))
    words: list[Span | str] = []
    if certain:
        words.append((f"{counted(certain, 'certain deadlock')} (key 5)  ", "stuck"))
    if possible:
        words.append((f"{counted(possible, 'possible deadlock')} (key 5)  ", "waiting"))
    if potential:
        words.append(f"{counted(potential, 'potential deadlock')} (key 5)")
    yield heading("Health")
    if (whole := long_hang(snapshot)) is not None:
        yield labelled("process", (hang.whom(snapshot), "stuck" if whole.certain else "waiting"))
    if snapshot.stopped:
        yield labelled("process", ("stopped by a signal or a debugger", "waiting"))
    yield labelled("deadlocks", *(words or [no_deadlock(index)]))
    waiting = [thread for thread in snapshot.threads if thread.state is ThreadState.WAITING]
    alive = sum(thread.alive for thread in snapshot.threads)
    idle = sum(index.is_idle(thread) for thread in snapshot.threads if thread.alive)
    if index.dormant:
        yield labelled("threads", f"{alive}; {_DORMANT}")
    else:
        yield labelled(
            "threads",
            f"{alive}, ",
            (f"{len(waiting)} wait for locks", "waiting" if waiting else "text"),
            f", {idle} only wait for work",
        )
    for pattern in snapshot.patterns[:_MAX_ROWS]:
        name = f" of {index.lock_name(pattern.lock)}" if pattern.lock else ""
        yield labelled("pattern", (pattern.name.words, "waiting"), name, f": {pattern.evidence}")


def _time(index: SnapshotIndex) -> Iterator[Line]:
    """Where the time of all living threads went in the last interval."""
    times = [thread.time for thread in index.snapshot.threads if thread.time is not None]
    mean = TimeSplit.mean(times)
    if mean is None:
        yield heading("Time of all threads", ": not measured yet")
        return
    yield heading("Time of all threads", f", the last {duration(index.snapshot.interval_s)}")
    yield make_line("  ", *time_bar(mean, 60))
    yield make_line("  ", *time_words(mean))


def _no_wait(index: SnapshotIndex) -> str:
    """Say that there is no present wait, as far as the library knows."""
    if index.dormant:
        return _DORMANT
    is_known = index.snapshot.complete and not index.snapshot.unobserved_waits
    return "no thread waits for a lock now" if is_known else "no wait for a lock is observed now"


def _worst_lock(index: SnapshotIndex) -> Iterator[Line]:
    lock = most_waited_now(index)
    if lock is None:
        yield heading("Worst lock", f": {_no_wait(index)}")
        return
    waiters = index.waiters_of(lock.id)
    yield heading("Worst lock", " ", (lock.name, "strong"), f"  {kind_word(lock.kind, lock.name)}")
    waits = [waiter.waiting_for for waiter in waiters if waiter.waiting_for is not None]
    longest = max(waits, key=lambda wait: wait.duration_s, default=None)
    lasts = (
        f", the longest {lasting(longest.duration_s, longest.is_lower_bound)}" if longest else ""
    )
    yield labelled(
        "waiters",
        (counted(len(waiters), "thread"), "waiting"),
        lasts,
        f"; {index.waited(duration(lock.rates.wait))} waited a second",
    )
    yield from _holder(index, lock, lock.holders or (longest.holders if longest else ()))


def _holder(index: SnapshotIndex, lock: Lock, holders: tuple[int, ...]) -> Iterator[Line]:
    if not holders:
        yield labelled("held by", ("not known", "dim"))
        return
    tid = holders[0]
    held = index.held(tid, lock.id)
    spans: list[Span | str] = [(index.holders(holders, lock.id), "holder")]
    if held is not None and held.duration_s is not None:
        spans.append(f" for {duration(held.duration_s)}")
    site = index.held_site(tid, lock.id)
    if site:
        spans += [" at ", (site, "where")]
    yield labelled("held by", *spans)
    does = holder_activity_span(index, lock)
    if not does[0] and tid in index.threads:
        does = state_word(index, index.threads[tid]), "text"
    if does[0]:
        yield labelled("which now", does)


def _longest_chain(index: SnapshotIndex) -> Iterator[Line]:
    """The longest chain of threads, each of which waits for a lock of the next one."""
    chain: list[Thread] = []
    for thread in index.waiting[:_MAX_STARTS]:
        longer = list(index.chain(thread.tid))
        if len(longer) > len(chain):
            chain = longer
    if len(chain) < 2:
        why = _DORMANT if index.dormant else "no thread waits for a lock with a known holder"
        yield heading("Longest chain", f": {why}")
        return
    yield heading("Longest chain", f" of {len(chain)} threads (key 4)")
    for number, thread in enumerate(chain[:_MAX_ROWS]):
        wait = thread.waiting_for
        does: list[Span | str] = (
            [
                " waits for ",
                (index.lock_name(wait.lock), "waiting"),
                f" {duration(wait.duration_s)}",
            ]
            if wait is not None
            else [f" {state_word(index, thread)}"]
        )
        arrow = "" if number == 0 else "→ "
        yield make_line(f"  {arrow}", (index.thread_name(thread.tid), "holder"), *does)
    if len(chain) > _MAX_ROWS:
        yield make_line((f"  and {len(chain) - _MAX_ROWS} more", "dim"))


#: Chains are looked for from so many waiters, those with the longest waits.
_MAX_STARTS = 500


def _locks(index: SnapshotIndex) -> Iterator[Line]:
    """The locks that threads waited for most in the last interval."""
    locks = sorted(
        (lock for lock in index.locks.values() if not lock.idle and lock.rates.wait > 0),
        key=lambda lock: (-lock.rates.wait, lock.id),
    )[:_MAX_ROWS]
    if not locks:
        why = _DORMANT if index.dormant else "no wait for a lock in the last interval"
        yield heading("Most waited for", f": {why}")
        return
    yield heading("Most waited for in the last interval", " (key 2)")
    most = locks[0].rates.wait
    for lock in locks:
        bar = "█" * max(1, round(lock.rates.wait / most * _BAR_WIDTH))
        name = lock.name[:_NAME_WIDTH].ljust(_NAME_WIDTH)
        yield make_line(
            "  ",
            (name, "strong"),
            f" {duration(lock.rates.wait):>6} a second ",
            (bar, "waiting"),
        )


def _alerts(alerts: Sequence[Notable]) -> Iterator[Line]:
    if not alerts:
        yield heading("Alerts", ": none so far")
        return
    yield heading("Alerts", f": {len(alerts)}, the latest first; {{ goes there")
    for alert in list(alerts)[: -_MAX_ROWS - 1 : -1]:
        yield make_line(f"  {clock_text(alert.time_ns)}  ", (alert.text, "waiting"))
