"""The details of a lock of a process without the library begin with a finding and its advice."""

from __future__ import annotations

from contextlib import closing

import pytest
from support.eventually import until
from support.targets import StartTarget

from locktop.collector.model import Lock, Snapshot
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.sources.attach import attach
from locktop.tui.views.class_details import class_details
from locktop.tui.views.lock_details import lock_details
from locktop.tui.views.styled_line import Line, line_text, unfolded

#: Seconds of waits after which each of them would be a finding, if it were for a lock.
LONG_S = 2.0


def texts_of(snapshot: Snapshot) -> list[str]:
    """Return the details of each lock and of each class of locks."""
    index = SnapshotIndex(snapshot)
    details = [lock_details(index, lock) for lock in index.locks.values()]
    details += [class_details(index, lock_class) for lock_class in index.classes.values()]
    return [text_of(tuple(lines)) for lines in details]


def text_of(lines: tuple[Line, ...]) -> str:
    return "\n".join(map(line_text, unfolded(lines)))


@pytest.mark.parametrize(
    ("program", "arguments", "contended"),
    [
        ("pool_waits_for_work", (), set()),
        ("contention_patterns", ("herd",), set()),
        ("six_pools", ("4",), {"g_accept_lock", "g_config_lock"}),
    ],
)
def test_a_pool_without_work_has_no_finding(
    start_unprepared: StartTarget, program: str, arguments: tuple[str, ...], contended: set[str]
) -> None:
    target = start_unprepared(program, *arguments)
    assert target.line()
    with closing(attach(target.pid)) as source:
        until(lambda: source.scan().duration_s >= LONG_S, "waits that are long")
        snapshot = source.scan(resolve=True)
    with_advice = {text.split()[0] for text in texts_of(snapshot) if "\n advice " in text}
    assert with_advice == contended


def longest_wait_s(snapshot: Snapshot, lock: Lock) -> float:
    waits = [t.waiting_for for t in snapshot.threads if t.tid in lock.waiters]
    return max([wait.duration_s for wait in waits if wait is not None], default=0.0)


def test_a_lock_held_in_a_call_says_so(start_unprepared: StartTarget) -> None:
    target = start_unprepared("contention_patterns", "longhold")
    target.expect("ready")
    snapshots: list[Snapshot] = []
    with closing(attach(target.pid)) as source:

        def is_long() -> bool:
            snapshots.append(source.scan(resolve=True))
            locks = [lock for lock in snapshots[-1].locks if lock.name == "g_lock"]
            return any(longest_wait_s(snapshots[-1], lock) >= LONG_S for lock in locks)

        until(is_long, "a long wait")
    (text,) = [text for text in texts_of(snapshots[-1]) if text.startswith(" g_lock")]
    finding, advice = text.split("\n")[1:3]
    assert "holder" in finding
    assert "in read" in finding
    assert advice.startswith(" advice    Make the call that sleeps before the lock is taken")
