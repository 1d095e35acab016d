"""Locks of one class, and the sums of a class."""

from __future__ import annotations

import pytest
from unit.builders import records

from locktop.collector.analysis import lock_classes
from locktop.collector.model import Blame, Kind, LockRates, PythonShare, WaitStack


def names(*locks: str) -> list[str]:
    made = [records.lock(number + 1, name) for number, name in enumerate(locks)]
    return [found.name for found in lock_classes.find(made)]


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ("conn::mu", "conn::mu", "conn::mu"),
        ("server.cc: shards[3].mu", "server.cc: shards[7].mu", "server.cc: shards[].mu"),
        ("grid[1][2]", "grid[11][0]", "grid[][]"),
        ("table<int[3]>::cells[1]", "table<int[3]>::cells[2]", "table<int[3]>::cells[]"),
        ("mutex made in new (a.c:4)", "mutex made in new (a.c:4)", "mutex made in new (a.c:4)"),
    ],
)
def test_names_equal_but_for_indexes_make_one_class(one: str, other: str, together: str) -> None:
    assert names(one, "g_alone", other) == [together]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("conn::mu", "conn::mv"),
        ("shard1", "shard2"),
        ("g_table", "g_table+0x28"),
        ("table<int[3]>::mu", "table<int[4]>::mu"),
        ("mutex in table<int[3]>::get (a.cc:4)", "mutex in table<int[4]>::get (a.cc:4)"),
        ("mutex 0x55d000001040", "mutex 0x55d000001080"),  # the addresses of both locks
        ("Rust Mutex 0x55d000001040", "Rust Mutex 0x55d000001080"),
        ("Rust Mutex in <[T; 1]>::get (a.rs:4)", "Rust Mutex in <[T; 2]>::get (a.rs:4)"),
    ],
)
def test_other_differences_of_names_make_no_class(one: str, other: str) -> None:
    assert names(one, other) == []


def test_a_class_is_of_one_kind_and_never_of_one_lock() -> None:
    locks = [
        records.lock(1, "conn::mu"),
        records.lock(2, "conn::mu", Kind.COND),
        records.lock(3, "conn::mu", Kind.COND),
        records.lock(0, "other locks"),
        records.lock(0, "other locks"),
    ]
    (found,) = lock_classes.find(locks)
    assert (found.kind, found.locks) == (Kind.COND, (2, 3))
    assert lock_classes.classes_by_lock([found]) == {2: found, 3: found}


def test_the_locks_of_the_python_interpreter_are_one_class_of_all_kinds() -> None:
    gil = "pylifecycle.c: _PyRuntime._main_interpreter._gil"
    locks = [
        records.lock(1, f"{gil}.cond", Kind.COND),
        records.lock(2, f"{gil}.mutex"),
        records.lock(3, "_PyRuntime+0x1b8"),
        records.lock(4, "my_PyRuntime"),
        records.lock(5, "_PyRuntimeOfMine"),
        records.lock(6, "mutex made in _PyRuntime_Init (pylifecycle.c:7)"),
    ]
    (found,) = lock_classes.find(locks)
    assert (found.name, found.kind, found.locks) == ("Python runtime", Kind.MUTEX, (1, 2, 3))
    assert lock_classes.name_in_class(locks[0], found) == f"{gil}.cond", (
        "opened, each has its own name"
    )
    assert lock_classes.find(locks[1:2]) == (), "a single one is no class"


def test_a_class_sums_the_figures_of_its_locks() -> None:
    locks = [
        records.lock(
            7,
            "conn::mu",
            acquisitions=100,
            contended=10,
            trylock_failed=2,
            signals=1,
            wait_s=3.0,
            wait_max_s=0.5,
            hold_s=4.0,
            hold_timed=50,
            hold_max_s=0.25,
            holders=(11,),
            waiters=(12, 13),
            wait_stacks=(WaitStack(1, 8, 2.0), WaitStack(2, 2, 1.0)),
            blame=(Blame(11, 0x10, 2.0),),
            rates=LockRates(10.0, 1.0, 0.5, 0.25, 2.0),
        ),
        records.lock(
            5,
            "conn::mu",
            acquisitions=1,
            contended=1,
            wait_s=2.0,
            wait_max_s=2.0,
            hold_s=1.0,
            hold_timed=1,
            hold_max_s=1.0,
            holders=(11,),
            waiters=(14,),
            wait_stacks=(WaitStack(2, 1, 2.0),),
            blame=(Blame(11, 0x10, 1.0), Blame(12, 0x10, 1.0)),
            destroyed=True,
            rates=LockRates(0.5, 0.5, 0.25, 0.25),
        ),
        records.lock(6, "conn::mu"),
    ]
    (found,) = lock_classes.find(locks)
    assert (found.locks, found.destroyed) == ((7, 5, 6), 1)
    assert (found.acquisitions, found.contended, found.trylock_failed) == (101, 11, 2)
    assert (found.wait_s, found.wait_max_s) == (5.0, 2.0)
    assert (found.hold_s, found.hold_timed, found.hold_max_s) == (5.0, 51, 1.0)
    assert (found.holders, found.waiters, found.signals) == ((11,), (12, 13, 14), 1)
    assert found.rates == LockRates(10.5, 1.5, 0.75, 0.5, 2.0)
    assert lock_classes.wait_stacks(locks) == (WaitStack(2, 3, 3.0), WaitStack(1, 8, 2.0))
    assert lock_classes.blame(locks) == (Blame(11, 0x10, 3.0), Blame(12, 0x10, 1.0))


def test_each_lock_of_a_class_has_its_own_name() -> None:
    locks = [records.lock(1, "conn::mu"), records.lock(2, "conn::mu")]
    (found,) = lock_classes.find(locks)
    assert lock_classes.single_name(locks[0], found) == "conn::mu at 0x55d000001040"
    assert lock_classes.single_name(locks[0], None) == "conn::mu"
    shards = [records.lock(1, "shards[0]"), records.lock(2, "shards[1]")]
    (found,) = lock_classes.find(shards)
    assert lock_classes.single_name(shards[1], found) == "shards[1]"


def test_the_samples_of_python_functions_add_up() -> None:
    locks = [
        records.lock(number, "a", wait_stacks=(WaitStack(1, 1, 1.0, python=shares),))
        for number, shares in enumerate(
            [(PythonShare(8, 2, 1),), (PythonShare(9, 3, 3), PythonShare(8, 2, 2)), ()], 1
        )
    ]
    (found,) = lock_classes.wait_stacks(locks)
    assert found.python == (PythonShare(8, 4, 3), PythonShare(9, 3, 3))
