"""The three sentences: the verdict, the cause, and what helps."""

from __future__ import annotations

from msgspec.structs import replace
from unit.builders import blocking, scenarios

from locktop.collector.analysis import blocking_tree
from locktop.collector.analysis.idle.classifier import Classifier
from locktop.collector.extensions.report.sentences import happened
from locktop.collector.model import (
    Pattern,
    PatternName,
    Snapshot,
)
from locktop.collector.render.text.context import ReportContext
from locktop.collector.render.words import present_waits

_MOVE_THE_CALL = "Make the call that sleeps before the lock is taken or after it is released."


def sentences(snapshot: Snapshot, before: Snapshot | None = None) -> list[str]:
    classified = Classifier().classify(snapshot)
    return happened(ReportContext(classified, before), blocking_tree.find(classified))


def test_a_deadlock_names_its_threads_locks_and_lines() -> None:
    verdict, cause, advice = sentences(scenarios.deadlock())
    assert verdict.startswith("deadlock: 3 threads of store 4711 wait for each other, for 41.7 s")
    assert (
        "philosopher-0 (4730) waits for mutex fork[1] held by philosopher-1 (4731) for 41.7 s, in"
        " take_right at /src/store/ring.c:36"
    ) in cause
    assert advice.endswith("mutex fork[0], then mutex fork[1], then mutex fork[2].")


def test_a_holder_that_sleeps_is_the_cause() -> None:
    _, cause, advice = sentences(blocking.pool_behind_index())
    assert cause == (
        "8 threads wait for mutex g_index_lock, the longest for 12.0 s (since"
        " 2026-11-21T03:12:33Z); loader holds it for 13.0 s, taken at journal_write journal.c:210,"
        " and has been in read(7 -> /var/lib/x/index) for 3.00 s; 300 threads wait because of it."
    )
    assert advice == _MOVE_THE_CALL


def test_a_probable_holder_is_named_with_what_it_does() -> None:
    _, cause, advice = sentences(blocking.sampled(holders_probable=blocking.PROBABLY))
    assert cause.endswith("; probably held by charger, which has been in recvfrom(3) for 21.0 s.")
    assert advice == _MOVE_THE_CALL


def test_the_cause_is_what_check_says() -> None:
    for snapshot in (
        blocking.pool_behind_index(),
        scenarios.normal(),
        blocking.sampled(),
        blocking.sampled(readers=2),
        blocking.sampled(holders_probable=blocking.PROBABLY),
    ):
        classified = Classifier().classify(snapshot)
        _, cause, _ = sentences(snapshot)
        assert cause.startswith(next(present_waits.sentences(classified)))


def test_readers_without_names_are_counted() -> None:
    _, cause, _ = sentences(blocking.sampled(readers=2))
    assert "; held by 2 readers, the lock does not tell which; the only thread that" in cause


def test_samples_tell_nothing_of_the_time_before() -> None:
    calm = replace(scenarios.empty(), source="proc")
    _, cause, _ = sentences(calm)
    assert cause == (
        "No thread waits for a lock at this moment, and no sample showed one that waited."
    )
    busy = scenarios.normal()
    threads = tuple(replace(thread, waiting_for=None) for thread in busy.threads)
    locks = tuple(replace(lock, waiters=()) for lock in busy.locks)
    _, cause, _ = sentences(replace(busy, source="proc", threads=threads, locks=locks))
    assert "since locktop began to sample" in cause
    assert "since the process started" not in cause


def test_a_dormant_library_knows_nothing() -> None:
    verdict, cause, advice = sentences(replace(scenarios.empty(), level="dormant"))
    assert verdict.startswith("cannot tell whether there is a deadlock")
    assert cause == "The library is dormant, so waits and holders are not known."
    assert advice == "Set another level, then look again."


def test_the_pattern_of_the_root_has_the_advice() -> None:
    snapshot = blocking.pool_behind_index()
    root = blocking_tree.find(Classifier().classify(snapshot)).roots[0].lock
    patterns = tuple(
        Pattern(name=PatternName.CONVOY, lock=lock, tids=(1,), evidence="", advice=advice)
        for lock, advice in ((root + 1000, "Change the other."), (root, "Change the root."))
    )
    assert sentences(replace(snapshot, patterns=patterns))[2] == "Change the root."
    assert sentences(replace(snapshot, patterns=patterns[:1]))[2] == _MOVE_THE_CALL


def test_a_calm_process_needs_no_change() -> None:
    assert sentences(scenarios.empty()) == [
        "no deadlock found: store 4711, 1 thread, 0 waiting for a lock.",
        "No thread waits for a lock at this moment, and none has waited.",
        "Nothing needs to change.",
    ]


def test_without_a_present_wait_the_most_waited_lock_is_named() -> None:
    snapshot = scenarios.normal()
    threads = tuple(replace(thread, waiting_for=None) for thread in snapshot.threads)
    locks = tuple(replace(lock, waiters=()) for lock in snapshot.locks)
    _, cause, advice = sentences(replace(snapshot, threads=threads, locks=locks))
    assert cause.startswith("No thread waits at this moment; ")
    assert "; threads waited most for " in cause
    assert advice == (
        "These waits follow no pattern that locktop knows; the stacks below show the code."
    )


def test_short_present_waits_are_not_the_cause() -> None:
    snapshot = scenarios.normal()
    threads = tuple(
        replace(thread, waiting_for=replace(thread.waiting_for, duration_s=0.004))
        if thread.waiting_for is not None
        else thread
        for thread in snapshot.threads
    )
    _, cause, advice = sentences(replace(snapshot, threads=threads))
    assert cause.startswith("The present waits are short; ")
    assert advice.startswith("These waits follow no pattern")
