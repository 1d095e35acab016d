"""The figures of spin locks, barriers, once, C11 locks and futexes, against the program's own."""

from __future__ import annotations

from typing import Any

import pytest
from support import tool
from support.targets import StartTarget


def test_a_spin_lock_has_the_programs_figures(start_target: StartTarget) -> None:
    target = start_target("spinlock_held_50ms")
    truth = target.truth()
    lock = tool.lock_named(tool.snapshot(target.pid), "g_spin_lock")
    assert lock["kind"] == "spin"
    assert (lock["acquisitions"], lock["contended"]) == (truth["acquisitions"], truth["contended"])
    assert lock["trylock_failed"] == truth["tries"]
    assert lock["wait_s"] == pytest.approx(truth["wait_s"], rel=0.05)
    assert lock["hold_s"] == pytest.approx(truth["hold_s"], rel=0.05)
    target.go_on()
    target.expect("held")

    def spins(document: dict[str, Any]) -> bool:
        return bool(tool.lock_named(document, "g_spin_lock")["waiters"])

    document = tool.scan_until(target.pid, spins, "a thread that spins")
    lock = tool.lock_named(document, "g_spin_lock")
    assert (lock["holders"], lock["waiters"]) == ([truth["holder"]], [truth["spinner"]])
    waits = tool.thread_of(document, truth["spinner"])["waiting_for"]
    assert tool.functions(document, waits["stack"])[:2] == ["spinner_takes", "spinner"]
    target.go_on()
    assert target.finish() == (0, ["ok"])


def test_a_barrier_has_the_programs_figures_and_no_holder(start_target: StartTarget) -> None:
    target = start_target("barrier_late_arrival")
    truth = target.truth()

    def all_wait(document: dict[str, Any]) -> bool:
        return len(tool.lock_named(document, "g_meeting")["waiters"]) == len(truth["tids"])

    document = tool.scan_until(target.pid, all_wait, "three waiting threads")
    lock = tool.lock_named(document, "g_meeting")
    assert lock["kind"] == "barrier"
    assert (lock["acquisitions"], lock["contended"]) == (truth["arrivals"], truth["contended"])
    waits = [tool.thread_of(document, tid)["waiting_for"] for tid in truth["tids"]]
    not_over = sum(wait["since_s"] for wait in waits)
    assert lock["wait_s"] - not_over == pytest.approx(truth["wait_s"], rel=0.05)
    assert (lock["holders"], sorted(lock["waiters"])) == ([], sorted(truth["tids"]))
    assert document["deadlocks"] == []
    target.go_on()
    assert target.finish() == (0, ["ok"])


@pytest.mark.parametrize("level", ["dormant", "counting", "contended"])
def test_a_once_routine_has_its_runner_as_holder(level: str, start_target: StartTarget) -> None:
    target = start_target("once_with_waiters", level=level)
    for name in ("g_once", "g_flag"):
        runner = target.truth()["runner"]
        if level != "dormant":

            def both_wait(document: dict[str, Any], name: str = name) -> bool:
                return len(tool.lock_named(document, name)["waiters"]) == 2

            document = tool.scan_until(target.pid, both_wait, "two waiting threads")
            lock = tool.lock_named(document, name)
            assert (lock["kind"], lock["holders"]) == ("once", [runner])
            assert document["deadlocks"] == []
        target.go_on()
        target.expect("done")
        if level != "dormant":
            lock = tool.lock_named(tool.snapshot(target.pid), name)
            assert (lock["holders"], lock["waiters"]) == ([], [])
            assert (lock["acquisitions"], lock["contended"]) == (3, 2)
            assert lock["hold_s"] == pytest.approx(lock["hold_max_s"])  # the one run is one hold
        target.go_on()
    assert target.finish() == (0, ["ok"])


def test_c11_locks_have_the_programs_figures(start_target: StartTarget) -> None:
    target = start_target("c11_primitives")
    truth = target.truth()

    def waits(document: dict[str, Any]) -> bool:
        return bool(tool.lock_named(document, "g_timed_mtx")["waiters"])

    document = tool.scan_until(target.pid, waits, "a waiting thread")
    lock = tool.lock_named(document, "g_timed_mtx")
    assert (lock["kind"], lock["holders"]) == ("mutex", [truth["holder"]])
    assert lock["acquisitions"] == truth["timed_acquisitions"]
    assert lock["trylock_failed"] == truth["tries"]
    waiter = tool.thread_of(document, lock["waiters"][0])
    assert tool.functions(document, waiter["waiting_for"]["stack"])[0] == "wants_it"
    assert tool.lock_named(document, "g_mtx")["acquisitions"] == truth["acquisitions"]
    assert tool.lock_named(document, "g_cnd")["kind"] == "cond"
    target.go_on()
    assert target.finish() == (0, ["ok"])


def test_waits_by_syscall_futex_have_the_programs_figures(start_target: StartTarget) -> None:
    target = start_target("futex_syscall_waits")
    truth = target.truth()
    document = tool.scan_until(
        target.pid,
        lambda document: bool(tool.lock_named(document, "g_last_word")["waiters"]),
        "a waiting thread",
    )
    lock = tool.lock_named(document, "g_word")
    assert lock["kind"] == "futex"
    assert lock["contended"] == lock["acquisitions"] == truth["waits"] > 0
    assert lock["wait_s"] == pytest.approx(truth["wait_s"], rel=0.05)
    waiter = tool.thread_of(document, truth["waiter"])
    assert waiter["state"] == "idle"
    names = tool.functions(document, waiter["waiting_for"]["stack"])
    assert names[:3] == ["futex", "waits_for", "waiter"]
    target.go_on()
    assert target.finish() == (0, ["ok"])


@pytest.mark.parametrize(
    "name", ["spinlock_held_50ms", "barrier_late_arrival", "c11_primitives", "futex_syscall_waits"]
)
@pytest.mark.parametrize("level", ["dormant", "counting"])
def test_the_program_has_the_same_results_at_lower_levels(
    name: str, level: str, start_target: StartTarget
) -> None:
    target = start_target(name, level=level)
    assert target.truth()
    target.go_on()
    if name == "spinlock_held_50ms":
        target.expect("held")
        target.go_on()
    assert target.finish() == (0, ["ok"])
