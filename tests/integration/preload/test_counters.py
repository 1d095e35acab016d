"""The figures of a snapshot, against those that the program measured itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from support import tool
from support.targets import Compiler, StartTarget, Target, remove_file_of, start_time

from locktop.collector.sources.attach import attach
from locktop.collector.sources.launch import preload_environment


@pytest.fixture(scope="module")
def slow(compiler: Compiler) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The truth of `hold_100ms` after its rounds, and a snapshot."""
    with Target([compiler.program("hold_100ms")], preload_environment(None)) as target:
        started = start_time(target.pid)
        yield target.truth(), tool.snapshot(target.pid)
    remove_file_of(target.pid, started)


Slow = tuple[dict[str, Any], dict[str, Any]]


def test_a_hold_with_three_waiters_has_the_programs_figures(slow: Slow) -> None:
    truth, document = slow
    lock = document["locks"][0]
    assert lock["name"] == "g_slow_lock"
    assert lock["kind"] == "mutex"
    assert lock["contended"] == truth["contended"]
    assert lock["acquisitions"] == truth["acquisitions"]
    assert lock["trylock_failed"] == 0
    assert lock["wait_s"] == pytest.approx(truth["wait_s"], rel=0.05)
    assert lock["wait_max_s"] == pytest.approx(truth["wait_max_s"], rel=0.05)
    assert lock["hold_s"] == pytest.approx(truth["hold_s"], rel=0.05)
    assert (lock["holders"], lock["waiters"]) == ([], [])


def test_each_thread_has_the_wait_time_that_it_measured(slow: Slow) -> None:
    truth, document = slow
    for wanter in truth["wanters"]:
        thread = tool.thread_of(document, wanter["tid"])
        assert thread["contended"] == wanter["contended"]
        assert thread["wait_s"]["mutex"] == pytest.approx(wanter["wait_s"], rel=0.05)
    holder = tool.thread_of(document, truth["holder"])
    assert (holder["name"], holder["contended"]) == ("holder", 0)


def test_every_contended_wait_has_its_stack(slow: Slow) -> None:
    truth, document = slow
    lock = tool.lock_named(document, "g_slow_lock")
    assert sum(stack["count"] for stack in lock["wait_stacks"]) == truth["contended"]
    waited = sum(stack["wait_s"] for stack in lock["wait_stacks"])
    assert waited == pytest.approx(lock["wait_s"], rel=1e-6)
    for stack in lock["wait_stacks"]:
        assert tool.functions(document, stack["stack"])[:2] == ["wanter_takes", "wanter_loop"]


def test_a_snapshot_has_the_present_holder_and_waiters(start_target: StartTarget) -> None:
    target = start_target("hold_100ms", "1")
    truth = target.truth()
    target.go_on()
    target.expect("held")
    wanters = {one["tid"] for one in truth["wanters"]}

    def all_wait(document: dict[str, Any]) -> bool:
        return set(tool.lock_named(document, "g_slow_lock")["waiters"]) == wanters

    document = tool.scan_until(target.pid, all_wait, "three waiters")
    lock = document["locks"][0]
    assert lock["holders"] == [truth["holder"]]
    assert tool.thread_of(document, truth["holder"])["holds"] == [lock["id"]]
    for tid in wanters:
        thread = tool.thread_of(document, tid)
        waits = thread["waiting_for"]
        assert thread["state"] == "waiting"
        assert (waits["lock"], waits["kind"]) == (lock["id"], "mutex")
        assert waits["holders"] == [truth["holder"]]
        names = tool.functions(document, waits["stack"])
        assert names[:2] == ["wanter_takes", "wanter_loop"]
        frame = document["stacks"][str(waits["stack"])][0]
        assert frame["file"].endswith("hold_100ms.c")
        assert frame["line"] > 0
    target.go_on()
    target.expect("released")
    document = tool.snapshot(target.pid)
    lock = tool.lock_named(document, "g_slow_lock")
    assert lock["contended"] == truth["contended"] + len(wanters)
    assert (lock["holders"], lock["waiters"]) == ([], [])


def test_contention_that_ended_before_the_first_scan_is_counted(
    start_target: StartTarget,
) -> None:
    target = start_target("contention_already_over")
    truth = target.truth()
    document = tool.snapshot(target.pid)
    lock = document["locks"][0]
    assert lock["name"] == "g_past_lock"
    assert lock["contended"] == truth["contended"]
    assert lock["acquisitions"] == 2 * truth["contended"]
    assert lock["wait_s"] == pytest.approx(truth["wait_s"], rel=0.05)
    assert sum(stack["count"] for stack in lock["wait_stacks"]) == truth["contended"]
    assert tool.functions(document, lock["wait_stacks"][0]["stack"])[0] == "wanted_in_the_past"


def test_a_recursive_mutex_is_held_until_its_last_unlock(start_target: StartTarget) -> None:
    target = start_target("recursive_mutex_still_held")
    target.expect("held")

    def wanted(document: dict[str, Any]) -> bool:
        return bool(tool.lock_named(document, "g_recursive_lock")["waiters"])

    document = tool.scan_until(target.pid, wanted, "a waiter for the recursive mutex")
    assert tool.lock_named(document, "g_recursive_lock")["holders"] == [target.pid]
    target.go_on()
    target.expect("free")
    lock = tool.lock_named(tool.snapshot(target.pid), "g_recursive_lock")
    assert (lock["holders"], lock["waiters"], lock["contended"]) == ([], [], 1)


def test_a_condition_wait_that_keeps_its_mutex_keeps_the_holder(
    start_target: StartTarget,
) -> None:
    target = start_target("cond_wait_keeps_mutex")
    target.expect("held")
    document = tool.snapshot(target.pid)
    for name, acquisitions in (("g_twice", 2), ("g_refused", 1)):
        lock = tool.lock_named(document, name)
        assert (lock["holders"], lock["acquisitions"]) == ([target.pid], acquisitions)
    target.go_on()
    target.expect("free")
    document = tool.snapshot(target.pid)
    assert [tool.lock_named(document, name)["holders"] for name in ("g_twice", "g_refused")] == [
        [],
        [],
    ]


def test_a_condition_wait_divides_one_hold_into_two(start_target: StartTarget) -> None:
    target = start_target("hold_around_cond_wait")
    truth = target.truth()
    lock = tool.lock_named(tool.snapshot(target.pid), "g_cond_held")
    assert lock["acquisitions"] == 2 * truth["rounds"]
    assert lock["hold_timed"] == lock["acquisitions"], "the library measured each hold"
    assert lock["hold_s"] == pytest.approx(truth["hold_s"], rel=0.05)


def test_failed_trylocks_are_counted_and_are_no_waits(start_target: StartTarget) -> None:
    target = start_target("failed_trylocks")
    truth = target.truth()
    document = tool.snapshot(target.pid)
    for kind, name in (
        ("mutex", "g_tried_lock"),
        ("rwlock", "g_tried_rwlock"),
        ("sem", "g_tried_sem"),
    ):
        lock = tool.lock_named(document, name)
        assert (lock["kind"], lock["trylock_failed"]) == (kind, truth[kind])
        assert (lock["contended"], lock["wait_s"]) == (0, 0.0)
    assert tool.lock_named(document, "g_tried_lock")["holders"] == [target.pid]


def test_a_timed_wait_that_gave_up_counts_as_wait_time_only(start_target: StartTarget) -> None:
    target = start_target("timed_waits_give_up")
    truth = target.truth()
    document = tool.snapshot(target.pid)
    for kind, name in (
        ("mutex", "g_kept_lock"),
        ("rwlock", "g_kept_rwlock"),
        ("cond", "g_silent_cond"),
        ("sem", "g_empty_sem"),
    ):
        lock = tool.lock_named(document, name)
        assert lock["wait_s"] == pytest.approx(truth[kind], rel=0.05), name
    for name in ("g_kept_lock", "g_kept_rwlock"):
        lock = tool.lock_named(document, name)
        assert (lock["acquisitions"], lock["contended"]) == (1, 0), "only the main thread has it"


def test_an_idle_pool_is_not_contention(start_target: StartTarget) -> None:
    target = start_target("pool_waits_for_work")
    truth = target.truth()

    def all_idle(document: dict[str, Any]) -> bool:
        pool = [thread for thread in document["threads"] if thread["name"] == "pool"]
        return len(pool) == truth["pool"] and all(one["waiting_for"] for one in pool)

    document = tool.scan_until(target.pid, all_idle, "a waiting pool")
    pool = [thread for thread in document["threads"] if thread["name"] == "pool"]
    cond = tool.lock_named(document, "g_work_ready")
    assert {thread["state"] for thread in pool} == {"idle"}
    assert {thread["waiting_for"]["lock"] for thread in pool} == {cond["id"]}
    assert cond["acquisitions"] == truth["waits"]
    assert cond["signals"] == truth["signals"]
    assert cond["wait_s"] > truth["wait_s"] * 0.95, "and the waits that still last"
    mutex = tool.lock_named(document, "g_work_lock")
    assert mutex["holders"] == [], "a thread in a condition wait holds no mutex"
    assert all(thread["holds"] == [] for thread in pool)


def test_semaphores_have_the_programs_figures(start_target: StartTarget) -> None:
    target = start_target("semaphore_ping_pong")
    truth = target.truth()

    def player_idle(document: dict[str, Any]) -> bool:
        return bool(tool.lock_named(document, "g_never")["waiters"])

    document = tool.scan_until(target.pid, player_idle, "a waiter for g_never")
    ping, pong = (tool.lock_named(document, name) for name in ("g_ping", "g_pong"))
    assert (ping["kind"], pong["kind"]) == ("sem", "sem")
    assert (ping["address"], pong["address"]) == (truth["ping"], truth["pong"])
    assert (ping["acquisitions"], pong["acquisitions"]) == (truth["rounds"], truth["rounds"])
    assert (ping["signals"], pong["signals"]) == (truth["rounds"], truth["rounds"])
    assert tool.lock_named(document, "g_never")["signals"] == 0
    assert (ping["trylock_failed"], pong["trylock_failed"]) == (truth["tries"], 0)
    assert pong["wait_s"] == pytest.approx(truth["wait_s"], rel=0.05)
    player = next(one for one in document["threads"] if one["name"] == "player")
    assert player["state"] == "idle"


def test_acquisitions_before_main_are_counted(start_target: StartTarget) -> None:
    target = start_target("locks_before_and_after_main")
    truth = target.truth()
    lock = tool.lock_named(tool.snapshot(target.pid), "g_early_lock")
    assert lock["acquisitions"] == truth["acquisitions"]


def test_a_forked_child_has_figures_of_its_own(start_target: StartTarget) -> None:
    target = start_target("fork_among_locking_threads")
    truth = target.truth()
    child = tool.snapshot(truth["child"])
    assert child["process"]["pid"] == truth["child"]
    lock = tool.lock_named(child, "g_child_lock")
    assert lock["contended"] == truth["child_contended"]
    assert lock["acquisitions"] == truth["child_acquisitions"]
    others = [one for one in child["locks"] if one["kind"] == "mutex" and one["id"] != lock["id"]]
    assert not any(one["contended"] for one in others), "the child has none of the parent's figures"
    parent = tool.snapshot(target.pid)
    assert tool.lock_named(parent, "g_child_lock")["contended"] == 0
    assert target.finish() == (0, [])


def test_no_lock_of_a_signal_handler_stays_held(start_target: StartTarget) -> None:
    target = start_target("handler_takes_locks")
    assert target.truth() == {"held": 0}
    document = tool.snapshot(target.pid)
    assert all(thread["holds"] == [] for thread in document["threads"])
    assert all(lock["holders"] == [] for lock in document["locks"])


def test_a_lock_that_one_thread_keeps_is_held_all_of_the_interval(
    start_target: StartTarget,
) -> None:
    """The share is 1 also for a hold that the library did not measure."""
    often = "lock {0}, unlock {0}, "
    scripts = [often.format(lock) * 8 * n + f"lock {lock}, meet 1, stay"
               for n, lock in enumerate("abcd")]  # fmt: skip
    read = "read r, meet 1, stay"
    waits = [f"meet 1, lock {lock}" for lock in "abcd"]
    target = start_target(
        "scripted_threads", "stay", *scripts, read, read, *waits, "meet 1, write r"
    )
    tids = target.truth()["tids"]
    with closing(attach(target.pid)) as source:
        seen = source.scan()
        while sum(1 for thread in seen.threads if thread.waiting_for) < len(waits) + 1:
            seen = source.scan()
        seen = source.scan()
    holds = [held for thread in seen.threads if thread.tid in tids for held in thread.holds]
    assert len(holds) == 6
    assert any(held.duration_s is None or held.is_lower_bound for held in holds)
    rates = [lock.rates for lock in seen.locks if lock.holders]
    shares = sorted(one.hold for one in rates if one.hold is not None)
    assert shares == pytest.approx([1.0, 1.0, 1.0, 1.0, 2.0])
