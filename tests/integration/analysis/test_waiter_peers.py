"""The only connection of a server that does not wait, while the others wait for a table."""

from __future__ import annotations

from contextlib import closing

import pytest
from support.eventually import until
from support.targets import StartTarget

from locktop.collector.model import Snapshot
from locktop.collector.render.words.named_holder import Certainty, NamedHolder
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.sources.attach import attach


def peers(snapshot: Snapshot) -> list[NamedHolder]:
    """Return the peer of each lock that has one."""
    index = SnapshotIndex(snapshot)
    waited = [lock for lock in snapshot.locks if lock.waiters and not lock.idle]
    named = [holder for lock in waited if (holder := index.holder_of(lock)) is not None]
    assert all(holder.certainty is Certainty.LIKELY for holder in named)
    assert all(holder.function == "connection" for holder in named)
    return named


@pytest.mark.parametrize("is_prepared", [True, False], ids=["library", "sampled"])
def test_the_connection_that_reads_has_the_table(
    is_prepared: bool, start_target: StartTarget, start_unprepared: StartTarget
) -> None:
    target = (start_target if is_prepared else start_unprepared)("table_of_a_connection")
    truth = target.truth()
    with closing(attach(target.pid)) as source:
        snapshots: list[Snapshot] = []

        def is_named() -> bool:
            snapshots.append(source.scan())
            return len(peers(snapshots[-1])) == int(truth["waiters"])

        until(is_named, "the connection that reads")
    holders = peers(snapshots[-1])
    assert {holder.tids for holder in holders} == {(truth["has_table"],)}
    assert all(holder.now is not None and "read(" in holder.now.what for holder in holders)


def test_of_two_connections_that_read_neither_is_named(start_target: StartTarget) -> None:
    target = start_target("table_of_a_connection", "two")
    truth = target.truth()
    with closing(attach(target.pid)) as source:

        def is_known() -> bool:
            """Whether the scan has read all stacks that may name a connection."""
            snapshot = source.scan()
            assert peers(snapshot) == []
            awake = [thread for thread in snapshot.threads if thread.waiting_for is None]
            stacks = [thread.now.stack if thread.now is not None else 0 for thread in awake]
            locks = [lock for lock in snapshot.locks if lock.waiters and not lock.idle]
            return all(stacks) and len(locks) == int(truth["waiters"])

        until(is_known, "the stacks of all threads")
