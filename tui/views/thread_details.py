"""Everything about one thread: what it waits for, because of whom, what it holds, its stacks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise

from locktop.collector.model import ActivityState, Thread, ThreadActivity, UnobservedWait, Wait
from locktop.collector.render.words import activity, readers, unobserved_waits
from locktop.collector.render.words.lock_kind import kind_word
from locktop.collector.render.words.snapshot_index import SnapshotIndex, is_stuck_waiting
from locktop.collector.render.words.source_location import short_location
from locktop.tui.views.cells import duration, exact, held_text, percent, waited_text
from locktop.tui.views.detail_parts import (
    blank,
    heading,
    labelled,
    latest_events,
    program_location,
    stack_of,
)
from locktop.tui.views.findings import thread_findings
from locktop.tui.views.histogram import histogram_lines
from locktop.tui.views.perf_counters import counter_lines, switches_line
from locktop.tui.views.styled_line import Line, Span, make_line
from locktop.tui.views.subject_graphs import LastMinutes, thread_graphs
from locktop.tui.views.thread_list import state_word
from locktop.tui.views.time_bar import time_words

#: By a rule whose name alone says little: why it holds.
_REASONS = {"used-as-lock": ": the threads use it as a lock"}

_MAX_HELD = 16
_MAX_MARKS = 10


def thread_details(
    index: SnapshotIndex, thread: Thread, minutes: LastMinutes | None = None
) -> Iterator[Line]:
    """The lines of the details panel for ``thread``; ``minutes``: for the graphs."""
    yield make_line(
        (f" {index.thread_name(thread.tid)}", "strong"),
        f"  thread {thread.tid}",
        f"  {state_word(index, thread)}",
    )
    yield from thread_findings(index, thread)
    yield from _waits(index, thread)
    yield from _because(index, thread)
    yield from _holds(index, thread)
    yield from thread_graphs(minutes, thread.tid)
    yield from _stack(index, thread)
    yield from _figures(index, thread)
    goes_on = is_stuck_waiting(thread)
    yield from histogram_lines("Waits in contention", thread.wait_histogram, None, goes_on)
    events = [event for event in index.snapshot.events if event.tid == thread.tid]
    yield from latest_events(index, events, show_lock=True)
    yield from _marks(index, thread)


def _time_limit(wait: Wait) -> str:
    if wait.renewals:
        return f", in {exact(wait.renewals + 1)} waits with a timeout"
    return " with a timeout" if wait.timed else ""


def _waits(index: SnapshotIndex, thread: Thread) -> Iterator[Line]:
    wait = thread.waiting_for
    if wait is None and thread.tid in index.unobserved_waits:
        yield from _unobserved_wait(index, index.unobserved_waits[thread.tid])
        return
    if wait is None:
        if thread.now is None or thread.now.doing is not ActivityState.BLOCKED:
            yield labelled("waits for", ("not known" if index.dormant else "nothing", "dim"))
        if thread.now is not None:
            yield does_now(index, thread.now)
        return
    holders = [index.holders((tid,), wait.lock) for tid in wait.holders]
    spans: list[Span | str] = [
        (index.lock_name(wait.lock), "strong"),
        f" ({kind_word(wait.kind, index.lock_name(wait.lock))})",
        readers.purpose(wait),
        (waited_text(wait, " for ") or _just_begun(index), "waiting"),
        _time_limit(wait),
    ]
    lock = index.locks.get(wait.lock)
    if holders:
        spans += [", held by ", (", ".join(holders[:4]), "holder")]
    elif lock is not None and (named := index.holder_of(lock)) is not None:
        names = index.holders(named.tids, lock.id)
        spans += [f", {named.adverb}held by ", (names, "holder")]
    elif held := readers.phrase(index.locks.get(wait.lock)):
        spans += [", held by ", (held, "holder")]
    frame = index.wait_frame(thread)
    if frame is not None:
        spans += [", in ", (short_location(frame), "where")]
    yield labelled("waits for", *spans)
    yield from rule_line(index, thread)


def does_now(index: SnapshotIndex, now: ThreadActivity) -> Line:
    """The activity of a thread without a known wait, and where its code is."""
    top = program_location(index, now.stack)
    where = (", at ", (top, "where")) if top else ()
    return labelled("now", (activity.doing(now, now.tid), "strong"), *where)


def _stack(index: SnapshotIndex, thread: Thread) -> Iterator[Line]:
    """The stack of the wait of a thread, else that of what it does."""
    unobserved, wait = index.unobserved_waits.get(thread.tid), thread.waiting_for
    stack = thread.stack
    if wait is None and unobserved is not None:
        stack = unobserved.stack
    if stack or wait is not None or unobserved is not None:
        yield blank()
        yield heading("Stack")
        yield from stack_of(index, stack, wait.site if wait is not None else 0)
        yield blank()


def _unobserved_wait(index: SnapshotIndex, wait: UnobservedWait) -> Iterator[Line]:
    since = f" for at least {duration(wait.duration_s)}" if wait.duration_s else ""
    yield labelled("waits for", (unobserved_waits.what([wait]), "strong"), (since, "waiting"))
    yield labelled(
        "", (f"the library does not observe this wait; {unobserved_waits.verdict(wait)}", "dim")
    )
    if top := program_location(index, wait.stack):
        yield labelled("", "in ", (top, "where"))


def rule_line(index: SnapshotIndex, thread: Thread) -> Iterator[Line]:
    """The idle rule that decided whether the wait of the thread is for work."""
    why = index.snapshot.why.get(thread.tid)
    if why and thread.waiting_for is not None:
        verdict = unobserved_waits.idle_verdict(thread.waiting_for.idle)
        yield labelled("", (f"{verdict}{_REASONS.get(why, f' (idle rule “{why}”)')}", "dim"))


def _because(index: SnapshotIndex, thread: Thread) -> Iterator[Line]:
    """The chain from the holder to its root: each thread waits for the next one."""
    chain = list(index.chain(thread.tid))
    for before, link in pairwise(chain):
        wait = before.waiting_for
        if wait is None:
            return
        site = index.held_site(link.tid, wait.lock)
        spans: list[Span | str] = [(index.thread_name(link.tid), "holder")]
        if site:
            spans += [" took it at ", (site, "where")]
        if link.waiting_for is None:
            spans.append(f"; now {state_word(index, link)}")
        else:
            spans += [
                "; waits for ",
                (index.lock_name(link.waiting_for.lock), "waiting"),
                waited_text(link.waiting_for),
            ]
        yield labelled("because", *spans)


def _holds(index: SnapshotIndex, thread: Thread) -> Iterator[Line]:
    if not thread.holds:
        snapshot = index.snapshot
        is_certain = snapshot.complete and not index.dormant and not snapshot.is_sampled
        yield labelled("holds", ("nothing" if is_certain else "nothing that is known", "dim"))
    for number, held in enumerate(islice(thread.holds, _MAX_HELD)):
        waiters = index.locks[held.lock].waiters if held.lock in index.locks else ()
        yield labelled(
            "" if number else "holds",
            (index.lock_name(held.lock), "strong"),
            " to read" if held.shared else "",
            f" {held.depth + 1} deep" if held.depth else "",
            f" for {held_text(held)}" if held.duration_s is not None else "",
            ", taken at " if held.site else "",
            (index.site(held.site), "where"),
            (
                f"; {len(waiters)} {'waits' if len(waiters) == 1 else 'wait'}" if waiters else "",
                "waiting",
            ),
        )
    if len(thread.holds) > _MAX_HELD:
        yield labelled("", (f"and {len(thread.holds) - _MAX_HELD} more", "dim"))


def _marks(index: SnapshotIndex, thread: Thread) -> Iterator[Line]:
    """The marks that the program set in this thread (locktop_mark), newest first."""
    marks = [mark for mark in index.snapshot.marks if mark.tid == thread.tid][:_MAX_MARKS]
    if marks:
        yield blank()
        yield heading("Marks")
    for mark in marks:
        yield make_line((f"  {duration(mark.ago_s):>6} ago ", "dim"), mark.text)


def _figures(index: SnapshotIndex, thread: Thread) -> Iterator[Line]:
    waited = [f"{kind.value} {duration(s)}" for kind, s in thread.wait_s.items() if s > 0]
    never = "never observed" if index.snapshot.is_sampled else "never"
    yield labelled("waited", ", ".join(waited) or never)
    if thread.acquisitions is not None:
        counts = f"{exact(thread.acquisitions)}, contended {exact(thread.contended)}"
        waits = ", and still waits" if is_stuck_waiting(thread) else ""
        yield labelled("acquired", counts, (waits, "waiting"))
    yield labelled(
        "lately",
        f"lock wait {index.waited(percent(thread.wait_share))}, "
        f"idle wait {index.waited(percent(thread.idle_share))}, "
        f"cpu {index.lately(percent(thread.cpu_share))}",
    )
    if thread.time is not None:
        yield labelled("time", *time_words(thread.time))
    yield labelled("cpu", f"{duration(thread.cpu_s)} in all")
    if thread.switches is not None:
        yield switches_line(thread.switches)
    if thread.counters is not None:
        yield from counter_lines(thread.counters)


def _just_begun(index: SnapshotIndex) -> str:
    return "" if index.snapshot.is_of_core else ", just begun"
