"""Locks that name no holder: the threads that probably hold them, and deadlocks over them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest
from support import tool
from support.eventually import until
from support.targets import PATIENCE_S, Compiler, Target

from locktop.collector.model import Snapshot
from locktop.collector.sources.attach import attach
from locktop.collector.sources.launch import preload_environment
from locktop.collector.sources.probes import probable_holders as searches

Need = Callable[..., object]

both_ways = pytest.mark.parametrize("is_prepared", [True, False], ids=["prepared", "unprepared"])


def environment(is_prepared: bool) -> dict[str, str]:
    return preload_environment(None) if is_prepared else {}


def probable_holders(pid: int) -> dict[int, set[int]]:
    """Return by tid of a waiter the threads that probably hold its lock."""
    done = tool.run("snapshot", "-p", pid, "-d", "0.3", "--format", "json")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert not any(deadlock["certain"] for deadlock in document["deadlocks"])
    return {
        waiter: {holder["tid"] for holder in lock["holders_probable"]}
        for lock in document["locks"]
        for waiter in lock["waiters"]
    }


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_the_readers_that_a_writer_waits_for_are_named(level: str, compiler: Compiler) -> None:
    """A pthread_rwlock_t does not name its readers. A thread that read it before has no part."""
    with Target([compiler.program("readers_hold", level)]) as target:
        truth = target.truth()
        wanted = set(truth["readers"])
        until(lambda: probable_holders(target.pid).get(truth["writer"]) == wanted, "the readers")


@both_ways
def test_a_deadlock_of_rust_mutexes_is_possible(
    is_prepared: bool, compiler: Compiler, need: Need
) -> None:
    need("rustc")
    program = compiler.program("rust_locks_cross")
    with Target([program, "std"], environment(is_prepared)) as target:
        one, other = target.truth()["tids"]
        deadline = time.monotonic() + PATIENCE_S
        while not (document := check(target.pid))["deadlocks"]:
            assert time.monotonic() < deadline, document
        (deadlock,) = document["deadlocks"]
        assert not deadlock["certain"]
        edges = {(edge["tid"], edge["held_by"], edge["how"]) for edge in deadlock["cycle"]}
        assert edges == {(one, other, "probably_held"), (other, one, "probably_held")}
        page = tool.run("check", "-p", target.pid)
        assert page.returncode == 3
        text = " ".join(page.stdout.split())
        assert "which goes on to release it in rust_locks_cross::crosses_std" in text
        assert tool.run("check", "--certain-only", "-p", target.pid).returncode == 0


def test_the_first_searches_follow_each_other_without_a_pause(
    compiler: Compiler, need: Need, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user sees the holders at once. Here no time passes, so a pause would never end."""
    need("rustc")
    clock = SimpleNamespace(monotonic=lambda: 1000.0, thread_time=time.thread_time)
    monkeypatch.setattr(searches, "time", clock)
    monkeypatch.setattr(searches, "UNPAUSED_S", 10.0, raising=False)  # on any machine
    with Target([compiler.program("rust_locks_cross"), "std"], {}) as target:
        waiters = set(target.truth()["tids"])
        with closing(attach(target.pid)) as source:
            until(lambda: named_in(source.scan()) == waiters, "the holders of both locks")


def named_in(snapshot: Snapshot) -> set[int]:
    """Return the threads that probably hold locks, by tid."""
    return {holder.tid for lock in snapshot.locks for holder in lock.holders_probable}


@both_ways
def test_threads_that_wait_for_one_holder_are_in_no_deadlock(
    is_prepared: bool, compiler: Compiler, need: Need
) -> None:
    """The holder waits for input. The words behind its locks look like mutexes of the waiters."""
    need("rustc")
    program = compiler.program("rust_locks_cross")
    with Target([program, "alike"], environment(is_prepared)) as target:
        waiters = target.truth()["tids"]
        until(lambda: len(named_waits(target.pid, waiters)) == 2, "the holder of both locks")
        (holders,) = {tuple(sorted(tids)) for tids in named_waits(target.pid, waiters).values()}
        assert holders == (target.pid,)
        assert check(target.pid)["deadlocks"] == []
        target.go_on()
        assert target.finish() == (0, ["ok"])


def named_waits(pid: int, waiters: list[int]) -> dict[int, set[int]]:
    return {tid: tids for tid, tids in probable_holders(pid).items() if tids and tid in waiters}


def check(pid: int) -> dict[str, Any]:
    """Return the JSON answer of a check that finds nothing certain."""
    done = tool.run("check", "--json", "-p", pid)
    assert done.returncode in {0, 3}, done.stdout + done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document
