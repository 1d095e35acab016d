"""Locks of C++, Python and Rust in programs without the library."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support import unprepared
from support.targets import StartTarget, Target, source_of
from support.watched import Need

from locktop.collector.model import Frame, Kind, Snapshot

#: For each argument of the program: the kind of its locks, and whether sampling can find the
#: deadlock.
CPLUSPLUS = {
    "mutex": (Kind.MUTEX, True),
    "timed": (Kind.MUTEX, True),
    "recursive": (Kind.MUTEX, True),
    "recursive_timed": (Kind.MUTEX, True),
    "shared": (Kind.RWLOCK, True),
    "reads": (Kind.RWLOCK, False),
    "gives_up": (Kind.MUTEX, False),
}
#: Locks of libc, taken by Python code; each thread then waits below ctypes.
CROSSED_IN_PYTHON = """\
import ctypes, sys, threading
libc = ctypes.CDLL(None)
libc.tmpfile.restype = ctypes.c_void_p
if sys.argv[1] == "files":
    locks, take = [ctypes.c_void_p(libc.tmpfile()) for _ in range(2)], libc.flockfile
else:
    locks, take = [ctypes.create_string_buffer(64) for _ in range(2)], libc.pthread_mutex_lock
both, tids = threading.Barrier(3), [0, 0]
def crosses(number):
    tids[number] = threading.get_native_id()
    take(locks[number])
    both.wait()
    take(locks[1 - number])
for number in range(2):
    threading.Thread(target=crosses, args=(number,), daemon=True).start()
both.wait()
print(tids, flush=True)
input()
"""
#: One thread in each kind of wait of Python's standard library.
WAITS_OF_PYTHON = """\
import json, queue, threading
lock, reentrant, event, tids = threading.Lock(), threading.RLock(), threading.Event(), {}
lock.acquire()
reentrant.acquire()
ways = {"lock": lock.acquire, "reentrant": reentrant.acquire, "event": event.wait,
        "queue": queue.Queue().get, "simple": queue.SimpleQueue().get,
        "condition": lambda: threading.Barrier(2).wait()}
def run(name, begun):
    tids[name] = threading.get_native_id()
    begun.set()
    ways[name]()
for name in ways:
    begun = threading.Event()
    threading.Thread(target=run, args=(name, begun), daemon=True).start()
    begun.wait()
print(json.dumps(tids), flush=True)
input()
"""


@pytest.mark.parametrize("way", CPLUSPLUS)
def test_a_deadlock_of_cxx_locks_is_found_if_the_locks_have_owners(
    way: str, need: Need, start_unprepared: StartTarget
) -> None:
    need("g++")
    kind, is_known = CPLUSPLUS[way]
    target = start_unprepared("cxx_locks_cross", way)
    truth = target.truth()
    tids = (truth["first"], truth["second"])
    seen = unprepared.scan_until(target.pid, unprepared.all_wait(tids))
    assert waits_for(seen, tids[0]) == (kind, truth["locks"][1], (tids[1],))
    wanted = (kind, truth["locks"][0], (tids[0],) if way != "reads" else ())
    assert waits_for(seen, tids[1]) == wanted
    assert unprepared.crossed(seen) == ([{tids, tids[::-1]}] if is_known else [])
    for tid in tids:
        assert any("crosses<" in name for name in unprepared.functions(seen, tid))


def test_std_lock_of_two_mutexes_is_no_deadlock(need: Need, start_unprepared: StartTarget) -> None:
    need("g++")
    target = start_unprepared("cxx_locks_cross", "together")
    truth = target.truth()
    seen = unprepared.scan_until(target.pid, unprepared.all_wait([truth["second"]]))
    _, address, holders = waits_for(seen, truth["second"])
    assert address in truth["locks"]
    assert holders == (truth["first"],)
    assert seen.deadlocks == ()


def test_a_deadlock_of_mutexes_taken_through_ctypes_is_found() -> None:
    with Target([sys.executable, "-c", CROSSED_IN_PYTHON, "mutexes"]) as target:
        tids = tuple(json.loads(target.line()))
        seen = unprepared.scan_until(target.pid, unprepared.all_wait(tids))
        assert unprepared.crossed(seen) == [{tids, tids[::-1]}]
        for tid in tids:
            assert waits_for(seen, tid)[0] is Kind.MUTEX
            assert any("ffi" in frame.module for frame in frames(seen, tid)), "ctypes calls libffi"


@pytest.mark.parametrize("build", ["static", "musl"])
def test_mutexes_of_a_static_glibc_are_known_and_those_of_musl_are_not(
    build: str, need: Need, tmp_path: Path
) -> None:
    compiler = (
        [need("cc", "gcc"), "-static"] if build == "static" else [need("musl-gcc", "musl-tools")]
    )
    program = tmp_path / "ring_of_three"
    command = [
        *compiler,
        "-D_GNU_SOURCE",
        "-pthread",
        "-O1",
        source_of("ring_of_three"),
        "-o",
        program,
    ]
    subprocess.run(command, check=True)
    with Target([program]) as target:
        target.expect("ready")
        target.go_on()
        tids = list(target.truth().values())
        seen = unprepared.scan_until(target.pid, unprepared.all_wait(tids))
    kinds = {waits_for(seen, tid)[0] for tid in tids}
    assert kinds == {Kind.MUTEX if build == "static" else Kind.FUTEX}
    assert len(unprepared.crossed(seen)) == len(seen.deadlocks) == (1 if build == "static" else 0)


@pytest.mark.parametrize("way", ["semaphore", "atomic"])
def test_cxx_semaphores_and_atomics_are_futexes_without_a_holder(
    way: str, need: Need, start_unprepared: StartTarget
) -> None:
    need("g++")
    target = start_unprepared("cxx_primitives", way)
    truth = target.truth()
    seen = unprepared.scan_until(target.pid, unprepared.all_wait([truth["waiter"]]))
    assert waits_for(seen, truth["waiter"]) == (Kind.FUTEX, truth["address"], ())


def test_a_futex_word_that_looks_like_a_mutex_is_a_futex(start_unprepared: StartTarget) -> None:
    """The program waits by syscall() only, not by functions of libc's locks."""
    target = start_unprepared("futex_words_like_locks")
    tids: list[int] = json.loads(target.line())
    seen = unprepared.scan_until(target.pid, unprepared.all_wait(tids))
    assert {waits_for(seen, tid)[0] for tid in tids} == {Kind.FUTEX}
    assert not any(waits_for(seen, tid)[2] for tid in tids)
    assert seen.deadlocks == ()


def test_a_deadlock_of_stdio_locks_is_not_reported() -> None:
    """libc's locks of files have no owner that the sampling source could read."""
    with Target([sys.executable, "-c", CROSSED_IN_PYTHON, "files"]) as target:
        tids = tuple(json.loads(target.line()))
        seen = unprepared.scan_until(target.pid, unprepared.all_wait(tids))
    for tid in tids:
        kind, _, holders = waits_for(seen, tid)
        assert (kind, holders) == (Kind.FUTEX, ())
    assert seen.deadlocks == ()


def test_waits_of_python_are_semaphores_and_an_rlock_alone_has_a_holder() -> None:
    with Target([sys.executable, "-c", WAITS_OF_PYTHON]) as target:
        tids = target.truth()
        seen = unprepared.scan_until(target.pid, unprepared.all_wait(tids.values()))
    kinds = {way: waits_for(seen, tid)[0] for way, tid in tids.items()}
    # Later versions park their threads by a semaphore on the stack, or by a futex of their own.
    before_3_14 = sys.version_info < (3, 14)
    assert set(kinds.values()) in ([{Kind.SEM}] if before_3_14 else [{Kind.SEM}, {Kind.FUTEX}])
    if before_3_14:
        assert len({waits_for(seen, tid)[1] for tid in tids.values()}) == len(tids)
    holders = {way: waits_for(seen, tid)[2] for way, tid in tids.items()}
    assert set(holders.pop("reentrant")) <= {target.pid}
    assert not any(holders.values())
    assert seen.deadlocks == ()


@pytest.mark.big
@pytest.mark.parametrize("way", ["std", "pthread", "alike"])
def test_a_deadlock_of_rust_locks_is_found_only_if_they_are_pthread_mutexes(
    way: str, need: Need, start_unprepared: StartTarget
) -> None:
    need("rustc")
    target = start_unprepared("rust_locks_cross", way)
    truth = target.truth()
    tids = tuple(truth["tids"])
    seen = unprepared.scan_until(target.pid, unprepared.all_wait(tids))
    wanted: list[tuple[Kind, str, tuple[int, ...]]]
    if way == "pthread":
        wanted = [(Kind.MUTEX, truth["locks"][1 - n], (tids[1 - n],)) for n in range(2)]
    else:
        locks = truth["locks"] if way == "alike" else truth["locks"][::-1]
        wanted = [(Kind.FUTEX, lock, ()) for lock in locks]
    assert [waits_for(seen, tid) for tid in tids] == wanted
    assert unprepared.crossed(seen) == ([{tids, tids[::-1]}] if way == "pthread" else [])
    certain = [deadlock for deadlock in seen.deadlocks if deadlock.certain]
    assert len(certain) == len(unprepared.crossed(seen))
    assert seen.unobserved_waiters == (() if way == "pthread" else tuple(sorted(tids)))
    for tid in tids:
        assert any("rust_locks_cross::" in name for name in unprepared.functions(seen, tid))
    if way == "alike":
        target.go_on()
        assert target.finish() == (0, ["ok"])


def waits_for(seen: Snapshot, tid: int) -> tuple[Kind, str, tuple[int, ...]]:
    """Return the kind, the address and the holders of the lock that a thread waits for."""
    wait = unprepared.wait_of(seen, tid)
    assert wait is not None
    (lock,) = (lock for lock in seen.locks if lock.id == wait.lock)
    return wait.kind, hex(lock.address), wait.holders


def frames(seen: Snapshot, tid: int) -> tuple[Frame, ...]:
    wait = unprepared.wait_of(seen, tid)
    assert wait is not None
    return seen.stacks[wait.stack]
