"""The roots of the present waits, against a program that knows its own queue."""

from __future__ import annotations

import json
import time
from contextlib import closing

import pytest
from support.targets import PATIENCE_S, StartTarget, Target

from locktop.collector.model import RootKind, Snapshot
from locktop.collector.render.text import report
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.sources.attach import attach
from locktop.tui.views import lock_list
from locktop.tui.views.headline import headline
from locktop.tui.views.lock_list import LockRow
from locktop.tui.views.styled_line import line_text

#: All threads of the crowd.
CROWD = 299
#: Of these, the threads that wait for the index lock itself.
USERS = 8


def scanned(target: Target, waiting: int) -> Snapshot:
    """Scan until so many threads wait, and the activity of the holder is known."""
    deadline = time.monotonic() + PATIENCE_S
    with closing(attach(target.pid)) as source:
        source.scan()
        while True:
            seen = source.scan(resolve=True)
            index = SnapshotIndex(seen)
            known = any(lock.holder_activity for lock in seen.locks)
            if len(index.blocking.waiters) == waiting and known:
                return seen
            assert time.monotonic() < deadline, len(index.blocking.waiters)


def first_row(index: SnapshotIndex) -> str:
    """Return the name of the first row of the list of locks."""
    singles = (lock for lock in index.locks.values() if lock.id not in index.class_of)
    rows: list[LockRow] = [*index.classes.values(), *singles]
    return min(rows, key=lock_list.SORT_KEYS[0].row_key(index)).name


@pytest.mark.parametrize("pool", ["semaphore", "mutexes"])
def test_a_crowd_behind_a_pool_is_behind_the_index_lock(
    pool: str, start_target: StartTarget
) -> None:
    """Most threads wait for the pool. But all holders of a connection wait for the index lock."""
    target = start_target("pool_behind_index", pool)
    truth = json.loads(target.line())
    seen = scanned(target, CROWD)
    index = SnapshotIndex(seen)
    (root,) = index.blocking.roots
    assert root.kind is RootKind.HOLDER
    assert root.tids == (truth["holder"],)
    assert index.lock_name(root.lock) == "g_index_lock"
    assert root.behind.threads == CROWD
    assert root.depth == 2
    waits = {one.lock: one for one in index.blocking.waiters.values()}
    rates = [index.locks[lock].rates.wait for lock in waits]
    assert root.behind.wait == pytest.approx(sum(rates))
    narrow = line_text(headline(index, 80))
    holder = "held by loader at load_index:44, in read"
    assert narrow == f" g_index_lock: 299 threads behind it; {holder}"
    assert f"now in {truth['call']}" in line_text(headline(index, 200))
    assert first_row(index) == "g_index_lock"
    text = " ".join(report.render(seen).split())
    assert "loader) holds mutex g_index_lock" in text
    assert f"{CROWD} threads wait behind this, " in text


def test_one_hot_lock_without_a_chain_is_named_as_before(start_target: StartTarget) -> None:
    target = start_target("pool_behind_index", "alone")
    target.line()
    index = SnapshotIndex(scanned(target, CROWD))
    text = line_text(headline(index, 120))
    assert text.startswith(" g_index_lock: 299 wait ")
    assert "behind it" not in text
    assert first_row(index) == "g_index_lock"


def test_threads_that_wait_for_work_are_behind_nobody(start_target: StartTarget) -> None:
    target = start_target("pool_behind_index", "work")
    target.line()
    index = SnapshotIndex(scanned(target, USERS))
    (root,) = index.blocking.roots
    assert root.behind.threads == USERS
    assert line_text(headline(index, 120)).startswith(" g_index_lock: 8 wait ")
