"""How long a hold has lasted at least, where the library did not time it, by the target's clock."""

from __future__ import annotations

import time
from contextlib import closing

import pytest
from support import tool
from support.incidents import INCIDENTS, need_answer, started
from support.targets import PATIENCE_S, Compiler, StartTarget

from locktop.collector.model import ActivityState, Held, Snapshot, ThreadActivity
from locktop.collector.render.documents import snapshot_codec
from locktop.collector.sources.attach import attach

_SERVICE = next(incident for incident in INCIDENTS if incident.name == "python")


def the_hold(snapshot: Snapshot, name: str) -> Held:
    """Return the only hold of a thread, by the begin of its name."""
    (held,) = (
        held for thread in snapshot.threads if thread.name.startswith(name) for held in thread.holds
    )
    return held


def saved_snapshot(pid: int) -> Snapshot:
    """Return what `locktop snapshot` says of a process: a single scan with all names."""
    return snapshot_codec.parse(tool.run("snapshot", "-p", pid).stdout.encode(), "")


def duration_s(held: Held) -> float:
    """Return a lower bound, which is known."""
    assert held.is_lower_bound
    assert held.duration_s is not None
    return held.duration_s


@pytest.mark.parametrize("way", ["mutex", "sem"])
def test_the_first_scan_bounds_a_hold_by_the_waits_for_it(
    way: str, start_target: StartTarget
) -> None:
    deadline = time.monotonic() + PATIENCE_S
    is_timed = True
    while is_timed:  # the library times some holds, and more of them on a busy machine
        assert time.monotonic() < deadline
        target = start_target("untimed_hold", way, level="contended")
        since_s = float(target.line())
        waited_since_s = time.monotonic()  # all wanters wait
        time.sleep(0.3)  # the length of the hold is what the test is about
        with closing(attach(target.pid, only_exact=True)) as source:
            scanned_s = time.monotonic()
            held = the_hold(source.scan(), "keeper")
            after_s = time.monotonic()
            is_timed = held.duration_s is not None and not held.is_lower_bound
            if not is_timed:
                assert scanned_s - waited_since_s <= duration_s(held) <= after_s - since_s
                later = the_hold(source.scan(), "keeper")
                assert duration_s(later) > duration_s(held)


@pytest.mark.parametrize("way", ["mutex", "sem"])
def test_a_hold_after_a_release_is_no_older_than_the_release(
    way: str, start_target: StartTarget
) -> None:
    target = start_target("untimed_hold", way, level="contended")
    first_s = float(target.line())
    with closing(attach(target.pid, only_exact=True)) as source:
        source.scan()
        target.go_on()
        since_s = float(target.line())
        assert since_s > first_s
        held = the_hold(source.scan(), "keeper")
        assert (held.duration_s or 0.0) <= time.monotonic() - since_s
    with closing(attach(target.pid, only_exact=True)) as source:
        held = the_hold(source.scan(), "keeper")
        assert (held.duration_s or 0.0) <= time.monotonic() - since_s


def activities(snapshot: Snapshot, name: str) -> set[ThreadActivity]:
    """Return what a thread does, as all parts of a snapshot have it."""
    (thread,) = (thread for thread in snapshot.threads if thread.name.startswith(name))
    as_holder = (lock.holder_activity for lock in snapshot.locks)
    parts = [thread.now, *(now for now in as_holder if now is not None and now.tid == thread.tid)]
    return {now for now in parts if now is not None and now.doing is ActivityState.BLOCKED}


def test_the_holder_of_a_python_lock_holds_it_for_as_long_as_others_wait(
    compiler: Compiler,
) -> None:
    need_answer(_SERVICE)
    with started(_SERVICE, compiler) as target:
        # On a busy machine the service may say that it is ready before its threads wait.
        deadline = time.monotonic() + PATIENCE_S
        while not the_hold(snapshot := saved_snapshot(target.pid), "Thread-1").is_lower_bound:
            assert time.monotonic() < deadline
        waits = [thread.waiting_for for thread in snapshot.threads]
        longest_s = max(wait.duration_s for wait in waits if wait is not None and not wait.idle)
        assert duration_s(the_hold(snapshot, "Thread-1")) >= longest_s - 0.01


def test_the_sleep_of_a_holder_goes_on_whichever_thread_the_user_follows(
    compiler: Compiler,
) -> None:
    need_answer(_SERVICE)
    began_s = time.monotonic()  # the kernel tells how long a thread has slept, also before
    with started(_SERVICE, compiler) as target, closing(attach(target.pid)) as source:
        source.scan(resolve=True)
        first_s = time.monotonic()
        source.follow(0)
        for _ in range(3):
            source.scan()
        holder = next(lock.holders[0] for lock in source.scan().locks if lock.holders)
        source.follow(holder)
        scanned_s = time.monotonic()
        snapshot = source.scan()
        lengths = {now.duration_s for now in activities(snapshot, "Thread-1")}
        assert len(lengths) == 1
        assert scanned_s - first_s <= lengths.pop() <= time.monotonic() - began_s
