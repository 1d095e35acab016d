"""The sentences about present waits: lock, waiters, since when, holder, what it does."""

from __future__ import annotations

from msgspec.structs import replace
from unit.builders import records, scenarios

from locktop.collector.model import (
    ActivityState,
    Kind,
    Snapshot,
    ThreadActivity,
    ThreadState,
)
from locktop.collector.render.words import present_waits, verdict


def test_the_sentence_names_lock_waiter_holder_and_its_activity() -> None:
    first = next(present_waits.sentences(scenarios.normal()))
    assert "reader waits for rwlock g_table_lock for 1.27 s " in first
    assert "(since 20" in first
    assert "journal holds it for 1.31 s, taken at journal_write" in first
    assert "fsync" in first.split("; ")[1]


def test_a_lower_bound_of_a_hold_is_marked() -> None:
    made = scenarios.normal()
    threads = tuple(
        replace(thread, holds=tuple(replace(held, is_lower_bound=True) for held in thread.holds))
        for thread in made.threads
    )
    first = next(present_waits.sentences(replace(made, threads=threads)))
    assert "journal holds it for at least 1.31 s, taken at journal_write" in first


def test_a_lock_is_left_out_where_the_caller_lists_it() -> None:
    every = list(present_waits.sentences(scenarios.normal()))
    assert len(every) > 1
    table = next(lock.id for lock in scenarios.normal().locks if lock.name == "g_table_lock")
    left = list(present_waits.sentences(scenarios.normal(), {table}))
    assert left == [sentence for sentence in every if "for rwlock g_table_lock" not in sentence]


def test_a_timed_wait_at_a_condition_may_not_be_the_first() -> None:
    """A session of MariaDB waits for its lock in waits of one second."""
    wait = records.wait(1, Kind.COND, 0.95, timed=True, is_lower_bound=True)
    wait = replace(wait, idle=False)

    def said(**more: object) -> str:
        thread = records.thread(
            10, "session", ThreadState.WAITING, waiting_for=replace(wait, **more)
        )
        cond = records.lock(1, "MDL", Kind.COND, waiters=(10,))
        return next(present_waits.sentences(records.snapshot((thread,), (cond,))))

    words = " (with a time limit, perhaps not the first such wait); nobody holds a condition"
    assert f"condition MDL for at least 950 ms{words}" in said()
    for more in ({"timed": False}, {"is_lower_bound": False}):
        assert "perhaps" not in said(**more)


def test_five_locks_have_a_sentence() -> None:
    threads = [
        records.thread(
            10 + n,
            f"w{n}",
            ThreadState.WAITING,
            waiting_for=records.wait(1 + n, Kind.MUTEX, 1.0 + n),
        )
        for n in range(7)
    ]
    locks = [records.lock(1 + n, f"g_{n}", waiters=(10 + n,)) for n in range(7)]
    said = list(present_waits.sentences(records.snapshot(threads, locks)))
    assert len(said) == 6
    assert said[0].startswith("w6 waits for mutex g_6 for 7.00 s")
    assert said[0].endswith("; its holder is not known")
    assert said[-1] == "and 2 more locks that threads wait for"


def test_a_holder_that_ended_never_released() -> None:
    made = scenarios.normal()
    locks = tuple(
        replace(lock, holder_activity=ThreadActivity(lock.holders[0], ActivityState.ENDED))
        if lock.holders
        else lock
        for lock in made.locks
    )
    first = next(present_waits.sentences(replace(made, locks=locks)))
    assert first.endswith(", and ended without releasing it")


def sessions_at_conditions(rate: float, waited_s: float = 60.0) -> Snapshot:
    """Return three sessions, each at a condition of its own, after such waits of ``waited_s``."""
    threads, locks = [], []
    for n in (1, 2, 3):
        wait = replace(records.wait(n, Kind.COND, n / 10), timed=True, idle=False)
        threads.append(records.thread(10 + n, f"s{n}", ThreadState.WAITING, waiting_for=wait))
        lock = records.lock(n, "cond in MDL_wait::timed_wait", Kind.COND, waiters=(10 + n,))
        locks.append(replace(lock, wait_s=waited_s, rates=replace(lock.rates, wait=rate)))
    return records.snapshot(threads, locks)


def test_the_earlier_waits_are_longer_than_any_present_one() -> None:
    """The check said "the longest for at least 884 ms, after 884 ms of such waits"."""
    (said,) = present_waits.sentences(sessions_at_conditions(rate=1.0, waited_s=0.3))
    assert "the longest for 300 ms" in said
    assert "of such waits" not in said


def test_conditions_of_one_name_share_a_sentence() -> None:
    """The check said "0 waiting for a lock" or had a sentence for each of five conditions."""
    snapshot = sessions_at_conditions(rate=1.0)
    (said,) = present_waits.sentences(snapshot)
    assert said.startswith(
        "3 threads wait at a condition in MDL_wait::timed_wait, the longest for 300 ms"
    )
    assert ", after 60.0 s of such waits with a time limit; nobody holds a condition" in said
    line = verdict.line(snapshot)
    assert "3 waiting for a lock (3 at a condition, which nobody holds)" in line


def test_brief_waits_are_not_one_long_wait() -> None:
    (said,) = present_waits.sentences(sessions_at_conditions(rate=0.5))
    assert "such waits" not in said
