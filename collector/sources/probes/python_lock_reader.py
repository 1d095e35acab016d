"""The reader of the lock objects of one process, made when a wait first needs it."""

from __future__ import annotations

import time

from locktop.collector.linux import futex, process_memory
from locktop.collector.linux.threads import ThreadMoment
from locktop.collector.symbols.python.interpreter_state import InterpreterState, find_state
from locktop.collector.symbols.python.lock_objects import LockObject, LockObjects

#: Seconds between two searches: a program may load an interpreter later.
_AGAIN_S = 10.0
#: Bytes of a waiter's stack that are searched for the address of its lock; first a few.
_STACK_SIZES = (1024, 4096)


class PythonLockReader:
    """Reads which lock of Python a thread waits for. All results are empty without CPython."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._next_at = 0.0
        self.state: InterpreterState | None = None
        self._locks: LockObjects | None = None

    def locks(self) -> LockObjects | None:
        """Return the reader of lock objects; None without an interpreter whose layout is known."""
        if self._locks is None and time.monotonic() >= self._next_at:
            self._next_at = time.monotonic() + _AGAIN_S
            try:
                self.state = find_state(self._pid)
            except OSError:
                return None
            if self.state is not None:
                self._locks = LockObjects(self._pid, self.state)
        return self._locks

    def waited_for(self, word: int, stack_pointer: int) -> LockObject | None:
        """Return the lock that a thread waits for; None if it is not certainly one of Python.

        Args:
            word: the address of the futex.
            stack_pointer: that of the thread in its system call.
        """
        locks = self.locks()
        if locks is None:
            return None
        for size in _STACK_SIZES:
            stack = process_memory.read(self._pid, stack_pointer, size)
            if lock := locks.waited_for(word, stack):
                return lock
        return None

    def waited_for_in(self, moment: ThreadMoment) -> tuple[int, LockObject] | None:
        """Return the word at which a thread sleeps and its lock; None if it waits for no lock."""
        if moment.state != "S" or moment.call is None:
            return None
        wait = futex.parse_wait(self._pid, moment.call)
        lock = self.waited_for(wait.address, moment.call.sp) if wait is not None else None
        return (wait.address, lock) if wait is not None and lock is not None else None
