"""The only connection of a server that does not wait, while the others wait for a table."""

from __future__ import annotations

from contextlib import closing

import pytest
from support.eventually import until
from support.targets import StartTarget

from locktop.collector.analysis import waiter_peers
from locktop.collector.model import Snapshot, Thread
from locktop.collector.sources.attach import attach


def peers(snapshot: Snapshot) -> list[Thread]:
    """Return the peer of each lock that has one."""
    waited = [lock for lock in snapshot.locks if lock.waiters and not lock.idle]
    pairs = [waiter_peers.find(snapshot, lock) for lock in waited]
    assert all(pair is None or pair[1].function == "connection" for pair in pairs)
    return [pair[0] for pair in pairs if pair is not None]


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
            return len(peers(snapshots[-1])) == truth["waiters"]

        until(is_named, "the connection that reads")
    holders = peers(snapshots[-1])
    assert {thread.tid for thread in holders} == {truth["has_table"]}
    assert all(thread.now is not None and "read(" in thread.now.what for thread in holders)


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
            return all(stacks) and len(locks) == truth["waiters"]

        until(is_known, "the stacks of all threads")
