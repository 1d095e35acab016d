"""Waits with a time limit that a thread begins again and again count as a whole."""

from __future__ import annotations

from contextlib import closing

from support.eventually import until
from support.targets import StartTarget

from locktop.collector.model import Snapshot, Wait
from locktop.collector.render.text.report import render
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.sources.attach import attach
from locktop.tui.views import thread_details
from locktop.tui.views.styled_line import line_text, unfolded

_RENEWALS = 2


def waits_of(snapshot: Snapshot) -> dict[int, Wait]:
    """Return the present waits by tid."""
    return {thread.tid: thread.waiting_for for thread in snapshot.threads if thread.waiting_for}


def test_a_thread_that_only_waits_on_has_waited_all_the_time(
    start_unprepared: StartTarget,
) -> None:
    target = start_unprepared("timed_waits_renewed")
    tids = target.truth()
    snapshots: list[Snapshot] = []
    with closing(attach(target.pid)) as source:

        def is_renewed() -> bool:
            snapshots.append(source.scan(resolve=True))
            wait = waits_of(snapshots[-1]).get(tids["renews"])
            return wait is not None and wait.renewals >= _RENEWALS

        until(is_renewed, "a renewed wait")
    snapshot, index = snapshots[-1], SnapshotIndex(snapshots[-1])
    wait = waits_of(snapshot)[tids["renews"]]
    assert wait.duration_s > _RENEWALS - 1, "each but the last has lasted a second"
    assert wait.duration_s <= snapshot.duration_s
    assert wait.is_lower_bound
    for earlier in snapshots:
        near_misses = [waits_of(earlier).get(tids[name]) for name in ("computes", "pauses")]
        assert not any(near_miss.renewals for near_miss in near_misses if near_miss is not None)
    details = thread_details.thread_details(index, index.threads[tids["renews"]])
    text = "\n".join(map(line_text, unfolded(details)))
    assert f"in {wait.renewals + 1} waits with a timeout" in text
    assert f", in {wait.renewals + 1} waits" in render(snapshot, width=200, idle=True)
