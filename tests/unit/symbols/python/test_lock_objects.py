"""The lock objects of this process's own interpreter."""

from __future__ import annotations

import os
import queue
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest
from support.pythons import need_semaphores

from locktop.collector.symbols.python.interpreter_state import InterpreterState, find_state
from locktop.collector.symbols.python.lock_objects import LockObject, LockObjects


@pytest.fixture(name="state", scope="module")
def own_state() -> InterpreterState:
    state = find_state(os.getpid())
    assert state is not None
    return state


@pytest.fixture(name="locks")
def own_locks(state: InterpreterState) -> LockObjects:
    return LockObjects(os.getpid(), state)


@contextmanager
def paused(work: Callable[[Callable[[], None]], None]) -> Iterator[int]:
    """Give the id of a thread that is where ``work`` calls its argument."""
    here, there = threading.Semaphore(0), threading.Semaphore(0)

    def pause() -> None:
        here.release()
        there.acquire()

    thread = threading.Thread(target=work, args=(pause,))
    thread.start()
    here.acquire()
    try:
        yield thread.native_id or 0
    finally:
        there.release()
        thread.join()


def held(
    state: InterpreterState, locks: LockObjects, work: Callable[[Callable[[], None]], None]
) -> frozenset[int]:
    """Return the locks of the blocks that a thread is in when ``work`` calls its argument."""
    with paused(work) as tid:
        return locks.held_by_blocks(state.frames(state.threads({tid})[tid]))


def test_the_owner_of_an_rlock_is_read(locks: LockObjects) -> None:
    lock = threading.RLock()
    described = LockObject(id(lock), owned=True, is_mutex=False)
    assert locks.owner(described) == 0
    with lock, lock:
        assert locks.owner(described) == threading.get_native_id()
    assert locks.owner(described) == 0


def test_only_an_object_on_the_stack_with_that_word_is_the_lock(
    state: InterpreterState, locks: LockObjects
) -> None:
    need_semaphores(sys.executable)
    lock, others = threading.Lock(), [threading.Lock(), threading.RLock()]
    word = state.word(id(lock) + state.objects.header)
    stack = struct.pack("=5Q", 0, 16, *map(id, others), id(lock))
    assert locks.waited_for(word, stack) == LockObject(id(lock), owned=False, is_mutex=False)
    assert locks.waited_for(word, stack[:-8]) is None
    assert locks.waited_for(word + 8, stack) is None
    assert locks.waited_for(word, b"\xff" * 999) is None


def test_blocks_of_locks_and_conditions_count(state: InterpreterState, locks: LockObjects) -> None:
    lock, messages = threading.Lock(), queue.Queue[int]()

    def work(pause: Callable[[], None]) -> None:
        with messages.not_full, lock:
            pause()

    assert held(state, locks, work) == {id(lock), id(messages.mutex)}


@contextmanager
def guarded(lock: threading.Lock) -> Iterator[None]:
    with lock:
        yield


def test_locks_of_an_exit_stack_and_of_a_context_manager_function_count(
    state: InterpreterState, locks: LockObjects
) -> None:
    many, inner, outer = [threading.Lock() for _ in range(100)], threading.Lock(), threading.Lock()

    def work(pause: Callable[[], None]) -> None:
        with ExitStack() as stack, guarded(outer):
            for lock in many:
                stack.enter_context(lock)
            stack.enter_context(guarded(inner))
            pause()

    assert held(state, locks, work) == {id(lock) for lock in (*many, inner, outer)}


def test_an_exit_stack_that_has_given_its_locks_away_does_not_count(
    state: InterpreterState, locks: LockObjects
) -> None:
    lock, other = threading.Lock(), threading.Lock()

    def work(pause: Callable[[], None]) -> None:
        with ExitStack() as stack:
            stack.enter_context(lock)
            stack.callback(other.release)
            stack.callback(str, other)
            other.acquire()
            with stack.pop_all():
                pass
            other.acquire()
            stack.callback(other.release)
            pause()

    assert held(state, locks, work) == frozenset()


def test_a_lock_that_no_block_has_does_not_count(
    state: InterpreterState, locks: LockObjects
) -> None:
    lock = threading.Lock()

    def work(pause: Callable[[], None]) -> None:
        leave = lock.__exit__
        with lock:
            pass
        lock.acquire()
        pause()
        leave(None, None, None)

    assert held(state, locks, work) == frozenset()
