"""Waits that no signal has reached are a finding, and waits for work are not."""

from __future__ import annotations

import time
from contextlib import closing

import pytest
from support.targets import PATIENCE_S, StartTarget

from locktop.collector.analysis import unsignalled_conditions
from locktop.collector.model import PatternName, Snapshot
from locktop.collector.render.text import report
from locktop.collector.render.words import verdict
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.sources.attach import attach
from locktop.tui.views.headline import headline
from locktop.tui.views.styled_line import line_text

_ENOUGH_S = 0.5


def _all_wait(snapshot: Snapshot, pid: int) -> bool:
    """Whether each thread but the first has waited long enough for a finding."""
    waits = [thread.waiting_for for thread in snapshot.threads if thread.tid != pid]
    return all(wait is not None and wait.duration_s >= _ENOUGH_S for wait in waits)


def test_only_waits_that_no_signal_has_reached_are_found(
    start_target: StartTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unsignalled_conditions, "MIN_WAIT_S", _ENOUGH_S)
    target = start_target("condition_waits_unsignalled")
    lost = tuple(sorted(target.truth()["lost"]))
    with closing(attach(target.pid)) as source:
        deadline = time.monotonic() + PATIENCE_S
        snapshot = source.scan(resolve=True)
        while not _all_wait(snapshot, target.pid):
            assert time.monotonic() < deadline
            time.sleep(0.1)
            snapshot = source.scan(resolve=True)
    assert len(snapshot.patterns) == 1, [(one.tids, one.evidence) for one in snapshot.patterns]
    (found,) = snapshot.patterns
    names = {lock.id: lock.name for lock in snapshot.locks}
    assert found.name is PatternName.NO_SIGNAL
    assert (names[found.lock], found.tids) == ("g_lost", lost)
    assert found.evidence.startswith("3 threads wait, for up to ")
    assert found.evidence.endswith("; no signal came meanwhile; 1 signal came before")
    page = " ".join(report.render(snapshot).split())
    assert f"no signal at cond g_lost: {found.evidence}" in page
    first = line_text(headline(SnapshotIndex(snapshot), 120))
    assert first.startswith(" 3 threads wait for g_lost, the longest ")
    assert ": no signal came meanwhile" in first
    assert not verdict.is_doubtful(snapshot), "a wait for work looks the same"
    assert ", 3 waiting for a signal that has not come" in verdict.line(snapshot)
