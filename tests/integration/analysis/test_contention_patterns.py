"""Each contention pattern is reported of a program that has it, and not of a near miss."""

from __future__ import annotations

import os
import signal
import time
from contextlib import closing

import pytest
from support.targets import PATIENCE_S, StartTarget

from locktop.collector.model import Pattern, PatternName, Snapshot, ThreadState
from locktop.collector.render.text.report import render
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source
from locktop.tui.views.headline import headline
from locktop.tui.views.styled_line import line_text

#: For each argument of the program: its pattern, and the name of the lock ("": no lock).
EXPECTED = {
    "convoy": ("convoy", "g_lock"),
    "serialised": ("serialised", "g_lock"),
    "herd": ("thundering_herd", "g_cond"),
    "starved": ("starved_writer", "g_rwlock"),
    "longhold": ("long_hold", "g_lock"),
    "falseidle": ("false_idle", "g_work"),
    "oversubscribed": ("oversubscribed", ""),
    "cpustarved": ("cpu_starved", "g_lock"),
    "holderstarved": ("cpu_starved", "g_lock"),
    "highrate": ("high_rate", "g_lock"),
}
#: Together these times are enough for rates, and for a wait that counts as starved.
_SCANS = 4
_BETWEEN_S = 0.5


def after_a_while(source: Source) -> Snapshot:
    time.sleep(_BETWEEN_S)
    return source.scan(resolve=True)


def of_name(snapshot: Snapshot, name: str) -> Pattern | None:
    return next((one for one in snapshot.patterns if one.name == name), None)


@pytest.mark.parametrize("what", EXPECTED)
def test_a_pattern_is_reported_with_its_lock(what: str, start_target: StartTarget) -> None:
    name, lock = EXPECTED[what]
    target = start_target("contention_patterns", what)
    target.expect("ready")
    with closing(attach(target.pid)) as source:
        deadline = time.monotonic() + PATIENCE_S
        snapshot = source.scan(resolve=True)
        while (found := of_name(snapshot, name)) is None:
            assert time.monotonic() < deadline, [str(one.name) for one in snapshot.patterns]
            snapshot = after_a_while(source)
    names = {one.id: one.name for one in snapshot.locks}
    assert names.get(found.lock, "") == lock
    assert set(found.tids) <= {thread.tid for thread in snapshot.threads}


@pytest.mark.parametrize("what", EXPECTED)
def test_a_near_miss_has_no_pattern(what: str, start_target: StartTarget) -> None:
    name, _ = EXPECTED[what]
    target = start_target("contention_patterns", f"{what}-not")
    target.expect("ready")
    with closing(attach(target.pid)) as source:
        scans = [source.scan(), *(after_a_while(source) for _ in range(_SCANS))]
    assert [of_name(snapshot, name) for snapshot in scans] == [None] * len(scans)


def test_a_sampled_writer_that_readers_overtake_is_perhaps_starved(
    start_unprepared: StartTarget,
) -> None:
    target = start_unprepared("contention_patterns", "starved")
    target.expect("ready")
    with closing(attach(target.pid)) as source:
        deadline = time.monotonic() + PATIENCE_S
        snapshot = source.scan(resolve=True)
        while not snapshot.patterns:
            assert time.monotonic() < deadline
            snapshot = after_a_while(source)
    (pattern,) = snapshot.patterns
    assert pattern.name is PatternName.PERHAPS_STARVED
    names = {lock.id: lock.name for lock in snapshot.locks}
    assert names[pattern.lock] == "g_rwlock"
    assert "perhaps starved at rwlock g_rwlock: 1 writer waits, for at least" in render(
        snapshot, width=200
    )
    assert "perhaps starved" in line_text(headline(SnapshotIndex(snapshot), 200))


@pytest.mark.parametrize("what", ["starved-not", "longread-not"])
def test_a_sampled_writer_behind_one_reader_is_not(
    what: str, start_unprepared: StartTarget
) -> None:
    """Brief readers come and go, and a sleeping one keeps the writer; or writers go first."""
    target = start_unprepared("contention_patterns", what)
    target.expect("ready")
    with closing(attach(target.pid)) as source:
        scans = [source.scan(), *(after_a_while(source) for _ in range(3 * _SCANS))]
    assert [snapshot.patterns for snapshot in scans] == [()] * len(scans)


def test_the_long_reader_starves_nobody_with_the_library(start_target: StartTarget) -> None:
    target = start_target("contention_patterns", "longread-not")
    target.expect("ready")
    with closing(attach(target.pid)) as source:
        scans = [source.scan(), *(after_a_while(source) for _ in range(_SCANS))]
    assert [of_name(snapshot, "starved_writer") for snapshot in scans] == [None] * len(scans)


def test_a_stopped_process_has_no_long_hold(
    start_target: StartTarget,
) -> None:
    target = start_target("contention_patterns", "longhold-not")
    target.expect("ready")
    target.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, target.pid, os.WSTOPPED | os.WNOWAIT)
    with closing(attach(target.pid)) as source:
        scans = [after_a_while(source) for _ in range(_SCANS)]
    assert {thread.state for thread in scans[-1].threads} >= {ThreadState.OTHER}
    assert [snapshot.patterns for snapshot in scans] == [()] * len(scans)
