"""Idle verdicts are kept by lock and call site."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import scenarios
from unit.builders.waits import wait, waiting

from locktop.collector.model import Deadlock, Kind
from locktop.collector.sources.preload import idle_cache as idle_cache_module
from locktop.collector.sources.preload.idle_cache import IdleCache
from locktop.collector.sources.probes.python_stacks import FIRST_ID


def test_verdicts_are_kept_by_lock_and_call_site_and_follow_later_scans() -> None:
    idle_cache, idle = IdleCache(), replace(wait(kind=Kind.SEM), idle=True)
    key = (idle.lock, idle.stack, idle.site)
    idle_cache.learn(waiting(t1=idle), named=False)
    assert idle_cache.idle(*key) is None, "the names of the snapshot were not known"
    idle_cache.learn(waiting(t1=idle), named=True)
    assert idle_cache.idle(*key) is True
    assert idle_cache.idle(2, *key[1:]) is None
    held = replace(idle, idle=False)
    idle_cache.learn(waiting(t1=held), named=False)
    assert idle_cache.idle(*key) is False
    idle_cache.learn(waiting(t1=held, t2=idle), named=True)
    assert idle_cache.idle(*key) is None, "lock and call site are equal, but the verdicts differ"


def test_no_verdict_is_kept_of_deadlocks_and_merged_stacks() -> None:
    ring, idle_cache = scenarios.deadlock(), IdleCache()
    idle_cache.learn(ring, named=True)
    stuck = {edge.tid for edge in ring.deadlocks[0].cycle}
    waits = [(one.tid, one.waiting_for) for one in ring.threads if one.waiting_for]
    known = {
        tid for tid, one in waits if idle_cache.idle(one.lock, one.stack, one.site) is not None
    }
    assert known
    assert not known & stuck
    merged = replace(wait(), stack=FIRST_ID)
    idle_cache.learn(waiting(t1=merged), named=True)
    assert idle_cache.idle(merged.lock, merged.stack, merged.site) is None


def test_threads_behind_a_deadlock_teach_no_verdict() -> None:
    idle_cache, one = IdleCache(), replace(wait(), idle=False)
    seen = waiting(t1=one)
    behind = Deadlock(certain=True, since_s=1.0, cycle=(), stuck=(seen.threads[0].tid,))
    idle_cache.learn(replace(seen, deadlocks=(behind,)), named=True)
    assert idle_cache.idle(one.lock, one.stack, one.site) is None
    idle_cache.learn(seen, named=True)
    assert idle_cache.idle(one.lock, one.stack, one.site) is False


def test_a_limited_number_of_verdicts_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle_cache_module, "MAX_KEPT", 2)
    idle_cache = IdleCache()

    def learned(*stacks: int) -> list[int]:
        for stack in stacks:
            idle_cache.learn(waiting(t1=replace(wait(), stack=stack)), named=True)
        return [
            stack for stack in range(1, 9) if idle_cache.idle(1, stack, wait().site) is not None
        ]

    assert learned(1, 2) == [1, 2]
    assert learned(3) == [1, 2, 3]
    assert learned(4) == [4]
