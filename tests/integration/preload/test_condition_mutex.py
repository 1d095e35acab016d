"""The mutex that a condition wait takes back: threads may wait for it inside the same call."""

from __future__ import annotations

import random
from contextlib import closing, suppress
from typing import Any

import pytest
from support import tool
from support.eventually import until
from support.targets import StartTarget

from locktop.collector.errors import LocktopError
from locktop.collector.linux.target import find_process
from locktop.collector.native import lib
from locktop.collector.render.documents.snapshot_codec import document
from locktop.collector.shm import layout
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.reader import Reader
from locktop.collector.shm.segment import GrowingArray
from locktop.collector.sources import discover, levels
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source

WAYS = ("broadcast", "signals", "c11")
_SLEEPERS_AND_WOKEN = (1 << 2 * lib.LT_SLEEPERS_BITS) - 1
KEPT_S = 0.3  # KEEP_MS of the target, in seconds


def waits_of_waiters(source: Source) -> list[dict[str, Any]]:
    threads = document(source.scan())["threads"]
    return [thread["waiting_for"] for thread in threads if thread["name"] == "waiter"]


@pytest.mark.parametrize("how", WAYS)
def test_woken_threads_wait_for_the_mutex(start_target: StartTarget, how: str) -> None:
    target = start_target("cond_waiters_take_mutex_back", how)
    target.expect("asleep")
    with closing(attach(target.pid, only_exact=True)) as source:
        assert {wait["kind"] for wait in waits_of_waiters(source)} == {"cond"}
        target.go_on()
        target.expect("woken")

        # On a busy machine a woken thread may not have asked for the mutex yet.
        def all_wait_for_the_mutex() -> bool:
            return {wait["kind"] for wait in waits_of_waiters(source)} == {"mutex"}

        until(all_wait_for_the_mutex, "waits for the mutex")
        waits = waits_of_waiters(source)
    assert {tuple(wait["holders"]) for wait in waits} == {(target.pid,)}
    assert all(wait["since_s"] >= KEPT_S for wait in waits)


@pytest.mark.parametrize("how", WAYS)
def test_time_for_the_mutex_is_counted(start_target: StartTarget, how: str) -> None:
    target = start_target("cond_waiters_take_mutex_back", how)
    target.expect("asleep")
    target.go_on()
    target.expect("woken")
    target.go_on()
    truth = target.truth()
    found = tool.snapshot(target.pid)
    (lock,) = (lock for lock in found["locks"] if lock["address"] == truth["mutex"])
    assert lock["wait_s"] == pytest.approx(truth["wait_s"], rel=0.15)
    assert truth["waiters"] <= lock["contended"] <= lock["acquisitions"]
    # The entries of ended threads have no tid.
    signaller = sum(one["wait_s"] for one in lock["blame"] if one["tid"] == truth["tid"])
    assert signaller == pytest.approx(truth["waiters"] * truth["kept_s"], rel=0.15)
    assert sum(one["wait_s"] for one in lock["blame"]) == pytest.approx(truth["wait_s"], rel=0.15)
    stack = max(lock["wait_stacks"], key=lambda stack: stack["wait_s"])
    assert tool.functions(found, stack["stack"])[0] == "wait_to_be_woken"


def test_a_free_mutex_is_not_contended(start_target: StartTarget) -> None:
    target = start_target("cond_signalled_with_mutex_free")
    target.truth()
    lock = tool.lock_named(tool.snapshot(target.pid), "g_free")
    assert (lock["contended"], lock["wait_s"], lock["blame"]) == (0, 0.0, [])


def left_behind(pid: int) -> list[str]:
    """Return what the shared memory still counts as waits of threads that have ended."""
    memory = discover.open_memory(find_process(pid))
    try:
        rows = Reader(memory, Clock(memory.header())).read().rows
        counted = [row for row in rows if row.waits & ~lib.LT_WAITS_NEW]
        found = [f"lock {row.lock}: {row.waits:#x}" for row in counted]
        conditions = GrowingArray(memory, layout.CONDITIONS_AT, layout.CONDITION.size)
        conditions.refresh()
        words = (
            int.from_bytes(memory.read(at, 8), layout.BYTE_ORDER) for at in conditions.offsets()
        )
        return found + [f"condition: {word:#x}" for word in words if word & _SLEEPERS_AND_WOKEN]
    finally:
        memory.close()


@pytest.mark.parametrize("level", ["counting", "contended", "all"])
def test_no_waiter_is_left_behind(start_target: StartTarget, level: str) -> None:
    target = start_target("cond_storm", "4000", level=level)
    target.expect("quiet")
    assert left_behind(target.pid) == []


def test_no_waiter_is_left_behind_by_changes_of_the_level(start_target: StartTarget) -> None:
    target = start_target("cond_storm", "10000")
    chance = random.Random(7)
    while not target.has_output():
        with suppress(LocktopError):  # the file is not there yet
            levels.set_level(target.pid, chance.choice(levels.NAMES))
    target.expect("quiet")
    assert left_behind(target.pid) == []
