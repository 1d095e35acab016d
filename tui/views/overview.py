"""The overview: the health of the process, where time goes, the worst lock, the longest chain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from locktop.collector.model import Lock, Notable, Thread, ThreadState, TimeSplit
from locktop.collector.render.words import activity, hang, lock_order, readers
from locktop.collector.render.words.lock_kind import kind_word
from locktop.collector.render.words.named_holder import Certainty
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.units import counted
from locktop.collector.render.words.verdict import long_hang
from locktop.tui.views.banner import no_deadlock
from locktop.tui.views.cells import duration, held_text, waited_text
from locktop.tui.views.detail_parts import blank, heading, labelled
from locktop.tui.views.headline import most_waited_now
from locktop.tui.views.lock_list import holder_activity_span
from locktop.tui.views.past_flag import clock_text
from locktop.tui.views.styled_line import Line, Span, cut, make_line
from locktop.tui.views.thread_list import state_word
from locktop.tui.views.time_bar import time_bar, time_words

_MAX_ROWS = 5
#: With so many visible lines the sections have blank lines between them.
_MIN_ROOM = 24
_BAR_WIDTH = 24
_NAME_WIDTH = 28
_DORMANT = "waits are not known: the library is dormant"


class Room(NamedTuple):
    """The cells that are visible without scrolling."""

    width: int
    height: int


def overview_lines(index: SnapshotIndex, alerts: Sequence[Notable], room: Room) -> Iterator[Line]:
    """The lines of the overview below the graphs, what matters most first.

    Args:
        index: the snapshot.
        alerts: the deadlocks and long waits of the past, the oldest first.
        room: the visible cells. With few lines none is blank, and a pattern has one.
    """
    sections = (
        _health(index, room),
        _worst_lock(index),
        _longest_chain(index),
        _time(index),
        _locks(index),
        _alerts(alerts),
    )
    for number, section in enumerate(sections):
        if number and room.height >= _MIN_ROOM:
            yield blank()
        yield from section


def _health(index: SnapshotIndex, room: Room) -> Iterator[Line]:
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
            (f"{_who(len(waiting))} for locks", "waiting" if waiting else "text"),
            f", {_who(idle, 'only ')} for work",
        )
    for pattern in snapshot.patterns[:_MAX_ROWS]:
        name = f" at {index.lock_name(pattern.lock)}" if pattern.lock else ""
        line = labelled("pattern", (pattern.name.words, "waiting"), name, f": {pattern.evidence}")
        yield line if room.height >= _MIN_ROOM else cut(line, room.width)


def _who(count: int, how: str = "") -> str:
    """The number of threads that wait: ``1 waits``, ``2 only wait``."""
    return f"{count} {how}{'waits' if count == 1 else 'wait'}"


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
    words: list[Span | str] = [(counted(len(waiters), "thread"), "waiting")]
    if longest is not None:
        words.append(waited_text(longest, ", the longest "))
    if len(waiters) > 1 and index.snapshot.interval_s and not index.dormant:
        words.append(f"; together they wait {duration(lock.rates.wait)} each second")
    yield labelled("waiters", *words)
    yield from _holder(index, lock)


def _holder(index: SnapshotIndex, lock: Lock) -> Iterator[Line]:
    named = index.holder_of(lock)
    if named is not None and named.certainty is not Certainty.EXACT:
        yield labelled("held by", named.adverb, (index.holders(named.tids, lock.id), "holder"))
        return
    if named is None:
        by_readers = readers.phrase(lock)
        yield labelled("held by", (by_readers, "holder") if by_readers else ("not known", "dim"))
        return
    tid = named.tids[0]
    held = index.held(tid, lock.id)
    spans: list[Span | str] = [(index.holders(named.tids, lock.id), "holder")]
    if held is not None and held.duration_s is not None:
        spans.append(f" for {held_text(held)}")
    site = index.held_site(tid, lock.id)
    if site:
        spans += [" at ", (site, "where")]
    yield labelled("held by", *spans)
    does = _activity(index, tid, lock)
    if does[0]:
        yield labelled("", "now ", does)


def _activity(index: SnapshotIndex, tid: int, lock: Lock | None) -> Span:
    """The activity of a thread, from its own record or that of a lock that it has; "" unknown."""
    thread = index.threads.get(tid)
    if lock is not None and (now := lock.holder_activity) is not None and now.tid == tid:
        does = holder_activity_span(index, lock)
        if does[0]:
            return does
    if thread is None:
        return "", "dim"
    return activity.doing(thread.now, tid) or state_word(index, thread), "text"


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
    last = chain[-1].waiting_for
    closing = next((t for t in chain if last is not None and t.tid in last.holders[:1]), None)
    shape = ", a circle" if closing is not None else ""
    yield heading("Longest chain", f" of {len(chain)} threads{shape} (key 4)")
    wanted: Lock | None = None
    for number, thread in enumerate(chain[:_MAX_ROWS]):
        yield _link(index, thread, wanted, "→ " if number else "")
        wanted = index.locks.get(thread.waiting_for.lock) if thread.waiting_for else None
    if len(chain) > _MAX_ROWS:
        yield make_line((f"  and {len(chain) - _MAX_ROWS} more", "dim"))
    if closing is not None:
        name = index.thread_name(closing.tid)
        yield make_line("  → ", (name, "holder"), (": the chain closes here", "waiting"))


def _link(index: SnapshotIndex, thread: Thread, wanted: Lock | None, arrow: str) -> Line:
    """The row of one thread of a chain.

    Args:
        index: the snapshot.
        thread: the thread.
        wanted: the lock of it that the thread before waits for.
        arrow: what precedes the name.
    """
    wait = thread.waiting_for
    does: list[Span | str] = [" now ", _activity(index, thread.tid, wanted)]
    if wait is not None:
        name = index.lock_name(wait.lock)
        does = [" waits for ", (name, "waiting"), f" {duration(wait.duration_s)}"]
    return make_line(f"  {arrow}", (index.thread_name(thread.tid), "holder"), *does)


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
