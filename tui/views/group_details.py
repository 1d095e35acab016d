"""Everything about threads that do the same: what they wait for, where, and which they are."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.model import ThreadGroup
from locktop.tui.views.cells import duration, exact, lasting, percent
from locktop.tui.views.detail_parts import blank, heading, labelled, stack_of
from locktop.tui.views.snapshot_index import LONG_WAIT_S, SnapshotIndex
from locktop.tui.views.styled_line import Line, Run, say
from locktop.tui.views.thread_details import does_now, rule_told
from locktop.tui.views.thread_list import contention_wait, row_time, states_word
from locktop.tui.views.time_bar import time_words

_MAX_HOLDERS = 4
_MAX_THREADS = 100


def group_details(picture: SnapshotIndex, group: ThreadGroup) -> Iterator[Line]:
    """The lines of the details panel for ``group``."""
    yield say(
        (f" {group.name}", "strong"),
        f"  {exact(len(group.threads))} threads",
        f"  {states_word(picture, group)}",
    )
    yield from _waits(picture, group)
    if group.wait is not None:
        yield from stack_of(picture, group.wait.stack, group.wait.site)
    asked = next((thread for thread in group.threads if thread.now is not None), None)
    if asked is not None and asked.now is not None:
        yield labelled("one of them", picture.thread_name(asked.tid), (f"  {asked.tid}", "dim"))
        yield from does_now(picture, asked.now)
    yield from _figures(picture, group)
    yield from _threads(picture, group)


def _waits(picture: SnapshotIndex, group: ThreadGroup) -> Iterator[Line]:
    wait = group.wait
    if wait is None:
        yield labelled("waits for", ("not known" if picture.dormant else "nothing", "dim"))
        return
    several = f", {exact(len(group.locks))} locks" if len(group.locks) > 1 else ""
    name = group.lock_name if several else ""
    said: list[Run | str] = [
        (name or picture.lock_name(wait.lock), "strong"),
        f" ({wait.kind.value}{several})",
        (f", the longest {lasting(wait.duration_s, wait.is_lower_bound)}", "waiting"),
    ]
    if group.holders:
        holders = [picture.holders((tid,), wait.lock) for tid in group.holders[:_MAX_HOLDERS]]
        said += [", held by ", (", ".join(holders), "holder")]
    yield labelled("waits for", *said)
    yield from rule_told(picture, group.first)


def _figures(picture: SnapshotIndex, group: ThreadGroup) -> Iterator[Line]:
    threads = group.threads
    waited = sum(map(contention_wait, threads))
    cpu_share = sum(thread.cpu_share for thread in threads)
    share = sum(thread.wait_share for thread in threads) / len(threads)
    yield labelled("waited", f"{duration(waited)} for locks, all together")
    if not picture.snapshot.is_sampled:  # nobody counts these from outside
        yield labelled(
            "acquired",
            f"{exact(sum(thread.acquisitions for thread in threads))}, "
            f"contended {exact(sum(thread.contended for thread in threads))}",
        )
    yield labelled(
        "lately",
        f"lock wait {picture.waited(percent(share))} each, "
        f"cpu {picture.lately(percent(cpu_share))} together",
    )
    time = row_time(group)
    if time is not None:
        yield labelled("time", *time_words(time), (", each on average", "dim"))


def _threads(picture: SnapshotIndex, group: ThreadGroup) -> Iterator[Line]:
    yield blank()
    yield heading("Threads")
    threads = group.threads
    if group.wait is None or group.wait.duration_s < LONG_WAIT_S:
        # What each does changes with every look; which they are does not.
        threads = tuple(sorted(threads, key=lambda thread: thread.tid))
    for thread in threads[:_MAX_THREADS]:
        wait = thread.waiting_for
        known = wait if wait is not None and wait.duration_s >= LONG_WAIT_S else None
        since = f"{lasting(known.duration_s, known.is_lower_bound):>6}" if known else " " * 6
        own = f"  {picture.lock_name(known.lock)}" if known and len(group.locks) > 1 else ""
        yield say((f"  {since} ", "waiting"), f" {thread.name}", (f"  {thread.tid}", "dim"), own)
    if len(group.threads) > _MAX_THREADS:
        yield say((f"   and {len(group.threads) - _MAX_THREADS} more", "dim"))
