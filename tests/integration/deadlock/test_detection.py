"""A deadlock is reported if there is one, and only then."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

import pytest
from support import tool
from support.targets import PATIENCE_S, StartTarget

from locktop.collector.linux import procfs
from locktop.collector.sources.attach import attach
from locktop.tui import cli

RING = {"alice": "g_beta_lock", "bob": "g_gamma_lock", "carol": "g_alpha_lock"}
HELD = {"alice": "g_alpha_lock", "bob": "g_beta_lock", "carol": "g_gamma_lock"}


def test_check_reports_a_ring_of_three_threads(start_target: StartTarget) -> None:
    target = start_target("ring_of_three")
    target.expect("ready")
    before = tool.run("check", "-p", target.pid)
    assert before.returncode == 0, before.stderr
    target.go_on()
    tids = target.truth()
    # One call is enough: check scans as often as a deadlock needs.
    after = tool.run("check", "-p", target.pid)
    assert after.returncode == 1, after.stdout + after.stderr
    for name, tid in tids.items():
        assert str(tid) in after.stdout
        assert f"{name}_takes_first" in after.stdout, "the function that took the held lock"
        assert f"{name}_wants_second" in after.stdout, "the function that waits"
        assert RING[name] in after.stdout


def test_a_snapshot_has_each_edge_of_the_ring(start_target: StartTarget) -> None:
    target = start_target("ring_of_three")
    target.expect("ready")
    target.go_on()
    tids = target.truth()
    document = tool.scan_until(target.pid, lambda seen: bool(seen["deadlocks"]), "the deadlock")
    (deadlock,) = document["deadlocks"]
    assert deadlock["certain"] is True
    assert deadlock["since_s"] > 0
    names = {tid: name for name, tid in tids.items()}
    locks = {lock["id"]: lock["name"] for lock in document["locks"]}
    assert {edge["tid"] for edge in deadlock["cycle"]} == set(names)
    for edge in deadlock["cycle"]:
        name, holder = names[edge["tid"]], names[edge["held_by"]]
        assert locks[edge["waits_for"]] == RING[name] == HELD[holder]
        assert tool.functions(document, edge["stack"])[:2] == [
            f"{name}_wants_second",
            f"{name}_loop",
        ]


def test_a_cycle_through_a_reader_is_reported(start_target: StartTarget) -> None:
    target = start_target("reader_in_cycle")
    tids = target.truth()
    done = tool.run("check", "-p", target.pid)
    assert done.returncode == 1, done.stdout + done.stderr
    document = tool.scan_until(target.pid, lambda seen: bool(seen["deadlocks"]), "the deadlock")
    (deadlock,) = document["deadlocks"]
    assert {edge["tid"] for edge in deadlock["cycle"]} == set(tids.values())
    kinds = {lock["id"]: lock["kind"] for lock in document["locks"]}
    assert sorted(kinds[edge["waits_for"]] for edge in deadlock["cycle"]) == ["mutex", "rwlock"]


@pytest.mark.parametrize("gives_up", [False, True])
def test_a_reader_and_a_waiting_writer_deadlock_unless_a_wait_is_timed(
    gives_up: bool, start_target: StartTarget
) -> None:
    target = start_target("reader_behind_writer", *(["timed"] if gives_up else []))
    tids = target.truth()

    def both_wait(seen: dict[str, Any]) -> bool:
        waiting = {one["tid"] for one in seen["threads"] if one["waiting_for"]}
        return set(tids.values()) <= waiting

    tool.scan_until(target.pid, both_wait, "two waiting threads")
    done = tool.run("check", "-p", target.pid)
    assert done.returncode == (0 if gives_up else 1), done.stdout + done.stderr
    if gives_up:
        return
    assert f"behind writer ({tids['writer']}), which waits to write" in done.stdout
    document = tool.scan_until(target.pid, lambda seen: bool(seen["deadlocks"]), "the deadlock")
    (found,) = document["deadlocks"]
    cycle = {edge["tid"]: (edge["held_by"], edge["behind"]) for edge in found["cycle"]}
    reader, writer = tids["reader"], tids["writer"]
    assert cycle == {reader: (writer, True), writer: (reader, False)}


def test_a_cycle_is_possible_at_most_if_threads_release_locks_of_others(
    start_target: StartTarget,
) -> None:
    target = start_target("unlock_by_other_thread")
    waiter = target.truth()["waiter"]

    def waits(seen: dict[str, Any]) -> bool:
        return any(one["waiting_for"] for one in seen["threads"] if one["tid"] == waiter)

    tool.scan_until(target.pid, waits, "the wait of the waiter")
    done = tool.run("check", "-p", target.pid)
    assert done.returncode == 3, done.stdout + done.stderr
    assert tool.run("check", "-q", "--certain-only", "-p", target.pid).returncode == 0
    assert "1 possible" in done.stdout
    assert "not certain: this program releases locks in threads" in done.stdout
    document = tool.snapshot(target.pid)
    assert [found["certain"] for found in document["deadlocks"]] == [False]
    assert "an owner may be wrong" in document["deadlocks"][0]["doubt"]
    target.go_on()
    target.expect("had its turn")
    assert target.finish() == (0, [])


@pytest.mark.parametrize("run", range(5))
def test_contention_alone_is_no_deadlock(
    run: int, start_target: StartTarget, capsys: pytest.CaptureFixture[str]
) -> None:
    target = start_target("nested_locks_one_order")
    target.expect("ready")
    with closing(attach(target.pid)) as source:
        deadline = time.monotonic() + PATIENCE_S
        while not any(lock.contended for lock in source.scan().locks):
            assert time.monotonic() < deadline, "the threads never contend"
        status = cli.main(["check", "-p", str(target.pid)])
        assert status == 0, f"run {run}: {capsys.readouterr()}"
        assert source.scan(resolve=True).deadlocks == ()


def test_one_scan_finds_a_deadlock_among_a_thousand_threads(start_target: StartTarget) -> None:
    target = start_target("thousand_threads")
    target.expect("ready")
    with closing(attach(target.pid)) as source:
        assert source.scan().deadlocks == source.scan().deadlocks == ()
        target.go_on()
        truth = target.truth()
        wait_until_stuck(target.pid, truth["tids"])
        begun = time.process_time()
        (deadlock,) = source.scan().deadlocks
        took_s = time.process_time() - begun
    assert deadlock.certain
    assert {edge.tid for edge in deadlock.cycle} == set(truth["tids"])
    # CPU time: with a scan every 0.5 s, the tool reports the deadlock within 1 s.
    assert took_s < 0.5


def wait_until_stuck(pid: int, tids: list[int]) -> None:
    """Wait until the kernel shows all threads asleep in a futex call."""
    while not all(procfs.thread_wchan(pid, tid).startswith("futex") for tid in tids):
        time.sleep(0.001)
