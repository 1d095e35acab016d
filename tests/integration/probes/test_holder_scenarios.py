"""A few of the scenarios of ``make probable``: the holder is named, and never another thread."""

from __future__ import annotations

from contextlib import closing

import pytest
from msgspec.structs import replace
from probable.deadlocks import check
from probable.judge import judge
from probable.programs import LIBRARIES, program
from support.targets import Compiler, Target

from locktop.collector.model import Draft, Thread
from locktop.collector.sources.attach import attach
from locktop.collector.sources.probes.probable_holders import ProbableHolders
from locktop.collector.sources.unnamed_waits import needs_names

_LIBRARIES = {library.name: library for library in LIBRARIES if library.language != "python"}
#: The library, the level of optimisation, and scenarios.
_CASES = {
    ("std", "-O0"): ("guard_in_box", "deadlock_of_three"),
    ("std", "-O2"): (
        "guard_in_box", "onlookers_that_used_it", "onlookers_at_condition",
        "onlooker_with_drop_flag",
    ),
    ("parking_lot", "-O2"): ("one_of_many_locks", "recycled_address"),
    ("tbb", "-O0"): ("deadlock_of_two", "onlookers_that_used_it"),
    ("tbb_rw", "-O0"): ("deadlock_of_two",),
    ("boost", "-O2"): ("holder_waits_for_other_lock", "onlookers_ended_leases"),
    ("openmp", "-O0"): ("guards_in_vector", "guard_moved_to_thread"),
    ("openmp", "-O2"): ("holder_at_condition", "guard_in_shared_pointer", "onlooker_with_context"),
    ("futex", "-O0"): ("plain", "onlookers_that_used_it"),
    ("semaphore", "-O0"): ("static_lock",),
    ("semaphore", "-O2"): (
        "plain", "guard_on_heap", "onlookers_ended_leases", "onlookers_that_used_it"
    ),
}  # fmt: skip
_SCANS = 10


@pytest.mark.parametrize("case", _CASES, ids=" ".join)
def test_the_holder_is_named_and_no_other_thread(case: tuple[str, str], compiler: Compiler) -> None:
    command = program(_LIBRARIES[case[0]], case[1], compiler)
    verdicts = [judge(command, scenario) for scenario in _CASES[case]]
    assert [verdict.doubts for verdict in verdicts] == [()] * len(verdicts)


@pytest.mark.parametrize("library", _LIBRARIES)
def test_a_deadlock_of_locks_without_a_holder_is_right(library: str, compiler: Compiler) -> None:
    command = program(_LIBRARIES[library], "-O2", compiler)
    for scenario in ("deadlock_of_two", "deadlock_of_three"):
        result = check(command, scenario)
        assert result.is_right, result.text


def test_a_check_reads_names_for_a_held_shared_mutex_and_for_no_other_condition(
    compiler: Compiler,
) -> None:
    """A small program has its names soon, and a large one only if the check waits for them."""
    boost = (*program(_LIBRARIES["boost"], "-O2", compiler), "deadlock_of_two")
    pool = (compiler.program("pool_waits_for_work"),)
    are_needed = []
    for command in (boost, pool):
        with Target(command) as target:
            target.truth()
            with closing(attach(target.pid)) as source:
                seen = source.scan()
            assert any(thread.waiting_for for thread in seen.threads)
            are_needed.append(needs_names(target.pid, seen))
    assert are_needed == [True, False]


@pytest.mark.parametrize("library", ["std", "semaphore"])
def test_a_healthy_program_has_no_deadlock(library: str, compiler: Compiler) -> None:
    command = program(_LIBRARIES[library], "-O2", compiler, "healthy")
    with Target(command) as target:
        target.expect("ready")
        with closing(attach(target.pid)) as source:
            for _ in range(_SCANS):
                assert source.scan(resolve=True).deadlocks == ()


def test_a_thread_that_waits_since_the_scan_is_no_holder(
    compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search reads the threads later than the scan does, whose waits it takes."""
    annotate, late = ProbableHolders.annotate, set[tuple[int, int]]()  # locks, and their waiters

    def annotate_later(self: ProbableHolders, draft: Draft, is_full: bool) -> bool:
        scanned, threads, first = draft.threads, list[Thread](), set[int]()
        for thread in scanned:
            wait = thread.waiting_for
            if wait is not None and wait.lock in first:
                late.add((wait.lock, thread.tid))
                threads.append(replace(thread, waiting_for=None))
                continue
            first |= {wait.lock} if wait is not None else set()
            threads.append(thread)
        draft.threads = tuple(threads)
        answer = annotate(self, draft, is_full)
        draft.threads = scanned
        return answer

    monkeypatch.setattr(ProbableHolders, "annotate", annotate_later)
    command = program(_LIBRARIES["semaphore"], "-O2", compiler, "healthy")
    seen = 0
    with Target(command) as target:
        target.expect("ready")
        with closing(attach(target.pid)) as source:
            for _ in range(_SCANS):
                late.clear()
                locks = source.scan(resolve=True).locks
                named = {(lock.id, each.tid) for lock in locks for each in lock.holders_probable}
                assert named.isdisjoint(late)
                seen += len(late)
    assert seen
