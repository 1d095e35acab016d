"""The holds of a Rust Mutex on the time line, compared with what the program measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from support.eventually import until
from support.past import held_ns, past
from support.targets import StartTarget

from locktop.collector.analysis.timeline_holds import holders_during
from locktop.collector.extensions.whatif.answers import predict_recording
from locktop.collector.extensions.whatif.model import WhatIfRefusal
from locktop.collector.extensions.whatif.question import WantedChanges
from locktop.collector.model import LaneState, Lock
from locktop.collector.render.text import timeline
from locktop.collector.render.text.timeline import longest_waits

_ROUNDS = 5
#: Of all holds together: clocks are read just before and after a system call.
_ROUNDING_NS = 100_000


def is_wanted(lock: Lock) -> bool:
    """Return whether a lock is the mutex that the third thread waits for."""
    return lock.type == "Rust Mutex" and "rust_wakers::want" in lock.name


def test_the_time_line_shows_holds_of_a_rust_mutex_and_who_woke_whom(
    start_target: StartTarget, need: Callable[[str], Path]
) -> None:
    need("rustc")
    target = start_target("rust_wakers", "awaited")
    with past(target) as scans:
        scans.scan()
        target.go_on()
        truth = target.truth()
        # On a busy host, names may take longer than a scan waits for them.
        until(lambda: any(is_wanted(lock) for lock in scans.scan().locks), "the name of the mutex")
        line = scans.line()
    third, long, brief = (truth[name][0] for name in ("third", "long", "brief"))
    (mutex,) = filter(is_wanted, line.snapshot.locks)
    flows = [flow for flow in line.flows if flow.lock == mutex.id]
    assert Counter((flow.from_tid, flow.to_tid) for flow in flows) == {
        (long, third): _ROUNDS, (brief, third): _ROUNDS,
    }  # fmt: skip
    assert all(flow.released_ns is not None for flow in flows)
    held = held_ns(line, third, mutex.id)
    assert truth["third"][1] - _ROUNDING_NS <= held <= truth["third"][2] + _ROUNDING_NS
    # Each of the others took the mutex while it was free, which nobody sees.
    assert not held_ns(line, long, mutex.id)
    own = [wait for wait in longest_waits(line.lanes) if wait.record.lock == mutex.id]
    assert {wait.record.tid for wait in own} == {third}
    assert all(holders_during(wait, line) is None for wait in own)
    text = timeline.render(line, 80)
    assert " woke its waiters at " in text
    others = {lock.id for lock in line.snapshot.locks if lock.type in ("Rust Condvar", "Rust park")}
    assert others
    assert not any(flow.lock in others for flow in line.flows)
    assert not any(span.lock in others and span.state is LaneState.HOLDING
                   for lane in line.lanes for span in lane.spans)  # fmt: skip
    target.go_on()
    assert target.finish() == (0, [])


def test_the_time_line_shows_who_woke_a_reader_of_a_rust_rwlock(
    start_target: StartTarget, need: Callable[[str], Path]
) -> None:
    need("rustc")
    target = start_target("rust_wakers", "written")
    with past(target) as scans:
        scans.scan()
        target.go_on()
        truth = target.truth()
        scans.scan()
        line = scans.line()
    (rwlock,) = (lock for lock in line.snapshot.locks if lock.type == "Rust RwLock")
    flows = [flow for flow in line.flows if flow.lock == rwlock.id]
    assert Counter((flow.from_tid, flow.to_tid) for flow in flows) == {
        (truth["writer"], truth["reader"]): _ROUNDS
    }
    assert not rwlock.blame
    assert not rwlock.hold_timed
    target.go_on()
    assert target.finish() == (0, [])


def test_what_if_says_that_a_rust_rwlock_cannot_be_replayed(
    start_target: StartTarget, need: Callable[[str], Path]
) -> None:
    need("rustc")
    target = start_target("rust_wakers", "written", level="all")
    with past(target) as scans:
        scans.scan()
        target.go_on()
        target.truth()
        scans.scan()
        first_ns, *_, last_ns = scans.history.times_ns()
        answered = predict_recording(scans.history, first_ns, last_ns, WantedChanges())
    assert answered.whatif.refusal is WhatIfRefusal.UNRECORDED
    target.go_on()
    assert target.finish() == (0, [])
