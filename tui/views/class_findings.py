"""The first lines of the details of a class of locks: what is wrong, who, where, what to do."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.analysis import waiter_peers
from locktop.collector.model import Lock, LockClass, Thread, ThreadState, Wait
from locktop.collector.render.words import activity, likely_holder
from locktop.collector.render.words.lock_kind import signal_word
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views.cells import counted, duration, lasting
from locktop.tui.views.detail_parts import program_location
from locktop.tui.views.findings import advice_line, pattern_findings
from locktop.tui.views.styled_line import Line, Span, make_line

#: Seconds of the longest wait, and seconds of waits a second: less is no finding.
_LONG_S, _MIN_RATE = 1.0, 0.5


def class_findings(index: SnapshotIndex, lock_class: LockClass) -> Iterator[Line]:
    """The findings about a class of locks, each with its advice; none of one without a finding."""
    patterns = list(pattern_findings(index, frozenset(lock_class.locks)))
    yield from patterns or _unclear_wait(index, lock_class)


def _unclear_wait(index: SnapshotIndex, lock_class: LockClass) -> Iterator[Line]:
    """The finding that threads wait for long or often, and nothing names who lets them go on."""
    locks = [lock for lock in index.members(lock_class) if lock.waiters and not lock.idle]
    waits = sorted(_waits(index, locks), key=lambda wait: -wait.duration_s)
    rate = sum(lock.rates.wait or 0.0 for lock in locks)
    if not waits or any(lock.holders or lock.holders_probable for lock in locks):
        return
    is_long = waits[0].duration_s >= _LONG_S
    if not is_long and rate < _MIN_RATE:
        return
    often = f" now, {duration(rate)} of waits a second" if rate >= _MIN_RATE else ""
    up_to = "" if waits[0].is_lower_bound else "up to "
    longest = lasting(waits[0].duration_s, waits[0].is_lower_bound)
    verb = "wait" if len(waits) > 1 else "waits"
    yield make_line(
        (" Long wait: " if is_long else " Contended: ", "waiting"),
        f"{counted(len(waits), 'thread')} {verb}{often}, for {up_to}{longest}; ",
        *_who(index, locks[0]),
    )
    thread, _ = _likely(index, locks[0])
    is_signalled = bool(signal_word(lock_class.kind, lock_class.name))
    yield advice_line(_advice(index, thread, is_signalled=is_signalled))


def _waits(index: SnapshotIndex, locks: list[Lock]) -> Iterator[Wait]:
    for tid in {tid for lock in locks for tid in lock.waiters}:
        thread = index.threads.get(tid)
        if thread is not None and thread.state is ThreadState.WAITING and thread.waiting_for:
            yield thread.waiting_for


def _likely(index: SnapshotIndex, lock: Lock) -> tuple[Thread | None, str]:
    """The thread that likely lets the waiters go on, and the function of all its peers."""
    if only := likely_holder.find(index.snapshot, lock):
        return only, ""
    peer = waiter_peers.find(index.snapshot, lock)
    return (peer[0], peer[1].function) if peer is not None else (None, "")


def _who(index: SnapshotIndex, lock: Lock) -> Iterator[Span | str]:
    """The likely thread, why it is one, what it does, and where."""
    thread, function = _likely(index, lock)
    if thread is None:
        yield "nothing names the thread that they wait for"
        return
    yield f"of the threads in {function} only " if function else "only "
    yield index.thread_name(thread.tid), "holder"
    yield " does not wait"
    if does := activity.doing(thread.now, thread.tid):
        yield f": {does}"
    if thread.now is not None and (top := program_location(index, thread.now.stack)):
        yield ", at "
        yield top, "where"


def _advice(index: SnapshotIndex, thread: Thread | None, *, is_signalled: bool) -> str:
    if thread is None:
        deed = "has to signal them" if is_signalled else "has what they need"
        return f"Find the thread that {deed}: a shows what each thread does."
    name = index.thread_name(thread.tid)
    return f"Look at {name} first (Enter): if they wait for it, it must do less before it goes on."
