"""What the holder of a contended lock does now, as it says itself before it does it."""

from __future__ import annotations

import signal
from contextlib import closing

import pytest
from support import tool
from support.targets import StartTarget, Target

from locktop.collector.attach import attach
from locktop.collector.export import json_, text
from locktop.collector.model import Doing, HolderNow, Snapshot

BLOCKED = (
    "reads_a_pipe",
    "writes_a_file",
    "accepts",
    "receives",
    "listens_at_a_path",
    "polls",
    "sleeps",
    "opens",
    "awaits_a_child",
)


def of_the_lock(snapshot: Snapshot) -> HolderNow | None:
    return next(lock.holder_now for lock in snapshot.locks if lock.name == "g_lock")


def begun(start_target: StartTarget, way: str) -> tuple[Target, str]:
    target = start_target("holders", way)
    about_to = target.line()
    target.expect("ready")
    return target, about_to


@pytest.mark.parametrize("way", BLOCKED)
def test_a_blocked_holder_is_in_the_call_that_it_made(way: str, start_target: StartTarget) -> None:
    target, about_to = begun(start_target, way)
    with closing(attach(target.pid)) as source:
        first = of_the_lock(source.look(resolve=True))
        seen = source.look(resolve=True)
    now = of_the_lock(seen)
    assert first is not None
    assert now is not None
    assert (now.doing, now.what) == (Doing.BLOCKED, about_to)
    assert now.call == about_to.partition("(")[0]
    assert first.for_s == 0.0 < now.for_s, "only what was seen counts"
    assert f"which is now in {about_to} for " in " ".join(text.render(seen).split())
    functions = [frame.function for frame in seen.stacks[now.stack]]
    assert functions[:2] == [way, "hold"], "where it made the call"
    (lock,) = (lock for lock in json_.document(seen)["locks"] if lock["holder_now"])
    assert lock["holder_now"]["what"] == about_to
    assert lock["holders"] == [now.tid]


def test_one_look_knows_the_names(start_target: StartTarget) -> None:
    target, _ = begun(start_target, "sleeps")
    seen = tool.snapshot(target.pid)
    lock = tool.lock_named(seen, "g_lock")
    assert tool.functions(seen, lock["holder_now"]["stack"])[:2] == ["sleeps", "hold"]


def test_one_that_runs_is_in_none(start_target: StartTarget) -> None:
    target, _ = begun(start_target, "runs")
    with closing(attach(target.pid)) as source:
        now = of_the_lock(source.look(resolve=True))
    assert now is not None
    assert (now.doing, now.call, now.what) == (Doing.RUNNING, "", "")


def test_a_stopped_one_is_stopped(start_target: StartTarget) -> None:
    target, _ = begun(start_target, "sleeps")
    target.process.send_signal(signal.SIGSTOP)
    with closing(attach(target.pid)) as source:
        now = of_the_lock(source.look(resolve=True))
    assert now is not None
    assert now.doing is Doing.STOPPED


def test_one_that_waits_for_another_lock_waits(start_target: StartTarget) -> None:
    target = start_target("ring3")
    target.expect("ready")
    target.go_on()
    target.line()
    with closing(attach(target.pid)) as source:
        seen = source.look(resolve=True)
    doing = [lock.holder_now.doing for lock in seen.locks if lock.holder_now]
    assert doing == [Doing.WAITING] * 3


def test_where_nobody_waits_nobody_asks(start_target: StartTarget) -> None:
    target = start_target("orders", "inversion")
    target.expect("ok")
    with closing(attach(target.pid)) as source:
        assert all(lock.holder_now is None for lock in source.look().locks)
