"""What locks are called that no symbol names: after where they were made, if that tells."""

from __future__ import annotations

from support.targets import StartTarget

from locktop.collector.attach import attach


def test_locks_are_called_after_where_they_were_made(start_target: StartTarget) -> None:
    target = start_target("made")
    truth = target.truth()
    source = attach(target.pid)
    try:
        source.look()
        snapshot = source.look(resolve=True)
    finally:
        source.close()
    names = {lock.address: lock.name for lock in snapshot.locks}
    places = {
        "connection": "made in connection_new",
        "factory": "in want",
        "again": "made in renew",
        "copied": "in want",
    }
    for which, place in places.items():
        address, line = truth[which]
        assert names[address] == f"mutex {place} (made.c:{line})"
