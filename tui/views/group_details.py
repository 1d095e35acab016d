"""The details of a group of threads that do the same: what they wait for, where, their names."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.model import ThreadGroup
from locktop.collector.render.words.lock_kind import kind_word
from locktop.collector.render.words.snapshot_index import (
    LONG_WAIT_S,
    SnapshotIndex,
    is_stuck_waiting,
)
from locktop.tui.views.cells import duration, exact, lasting, percent, waited_text
from locktop.tui.views.detail_parts import blank, heading, labelled, stack_of
from locktop.tui.views.findings import thread_findings
from locktop.tui.views.lock_details import waiting_now
from locktop.tui.views.styled_line import Line, Span, make_line
from locktop.tui.views.thread_details import does_now, rule_line
from locktop.tui.views.thread_list import contention_wait, row_time, states_word
from locktop.tui.views.time_bar import time_words

_MAX_HOLDERS = 4
_MAX_THREADS = 100


def group_details(index: SnapshotIndex, group: ThreadGroup) -> Iterator[Line]:
    """The lines of the details panel for ``group``."""
    yield make_line(
        (f" {group.name}", "strong"),
        f"  {exact(len(group.threads))} threads",
        f"  {states_word(index, group)}",
    )
    yield from thread_findings(index, group.first)
    yield from _waits(index, group)
    if group.wait is not None:
        yield from stack_of(index, group.wait.stack, group.wait.site)
    observed = next((thread for thread in group.threads if thread.now is not None), None)
    if observed is not None and observed.now is not None:
        yield labelled(
            "one of them ", index.thread_name(observed.tid), (f"  {observed.tid}", "dim")
        )
        yield does_now(index, observed.now)
        if observed.now.stack:
            yield from stack_of(index, observed.now.stack, 0)
    yield from _figures(index, group)
    yield from _threads(index, group)


def _waits(index: SnapshotIndex, group: ThreadGroup) -> Iterator[Line]:
    wait = group.wait
    if wait is None:
        yield labelled("waits for", ("not known" if index.dormant else "nothing", "dim"))
        return
    several = f", {exact(len(group.locks))} locks" if len(group.locks) > 1 else ""
    name = (group.lock_name if several else "") or index.lock_name(wait.lock)
    spans: list[Span | str] = [
        (name, "strong"),
        f" ({kind_word(wait.kind, name)}{several})",
        (waited_text(wait, ", the longest "), "waiting"),
    ]
    if group.holders:
        holders = [index.holders((tid,), wait.lock) for tid in group.holders[:_MAX_HOLDERS]]
        spans += [", held by ", (", ".join(holders), "holder")]
    yield labelled("waits for", *spans)
    yield from rule_line(index, group.first)


def _figures(index: SnapshotIndex, group: ThreadGroup) -> Iterator[Line]:
    threads = group.threads
    waited = sum(map(contention_wait, threads))
    cpu_share = sum(thread.cpu_share for thread in threads)
    share = sum(thread.wait_share for thread in threads) / len(threads)
    yield labelled("waited", f"{duration(waited)} for locks, all together")
    if group.acquisitions is not None:
        counts = f"{exact(group.acquisitions)}, contended {exact(group.contended)}"
        waiting = sum(map(is_stuck_waiting, threads))
        more = f", {waiting_now(waiting)}" if waiting else ""
        yield labelled("acquired", counts, (more, "waiting"))
    yield labelled(
        "lately",
        f"lock wait {index.waited(percent(share))} each, "
        f"cpu {index.lately(percent(cpu_share))} together",
    )
    time = row_time(group)
    if time is not None:
        yield labelled("time", *time_words(time), (", each on average", "dim"))


def _threads(index: SnapshotIndex, group: ThreadGroup) -> Iterator[Line]:
    yield blank()
    yield heading("Threads")
    threads = group.threads
    if group.wait is None or group.wait.duration_s < LONG_WAIT_S:
        # The activity of each thread changes with every scan, so the order is by tid.
        threads = tuple(sorted(threads, key=lambda thread: thread.tid))
    for thread in threads[:_MAX_THREADS]:
        wait = thread.waiting_for
        long_wait = wait if wait is not None and wait.duration_s >= LONG_WAIT_S else None
        since = (
            f"{lasting(long_wait.duration_s, long_wait.is_lower_bound):>6}"
            if long_wait
            else " " * 6
        )
        own = f"  {index.lock_name(long_wait.lock)}" if long_wait and len(group.locks) > 1 else ""
        yield make_line(
            (f"  {since} ", "waiting"), f" {thread.name}", (f"  {thread.tid}", "dim"), own
        )
    if len(group.threads) > _MAX_THREADS:
        yield make_line((f"   and {len(group.threads) - _MAX_THREADS} more", "dim"))
