"""The call stacks of one process's threads, from outside.

Whatever is not known for certain cuts a stack short: what is shown of it is so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from locktop.collector import procfs, syscalls
from locktop.collector.syscalls import Call
from locktop.collector.unwind import ptrace_stop
from locktop.collector.unwind.code_map import CodeMap
from locktop.collector.unwind.machine import Machine, machine
from locktop.collector.unwind.recover import FrameRegisters
from locktop.collector.unwind.stack import Stack, Words
from locktop.collector.unwind.walk import Unwound, Walk

_MOST_KEPT = 4096


class _Known(NamedTuple):
    """A stack that was followed."""

    code: int  # version of the code map
    words: Words  # of the stack: all that led the way
    unwound: Unwound


class Unwinder:
    """Of one process. Ids are those of our own pid namespace.

    Raises LookupError where the processor is not one that is known.
    """

    def __init__(self, pid: int, processor: Machine | None = None) -> None:
        found = processor or machine()
        if found is None:
            raise LookupError("stacks of this processor cannot be followed")
        self._machine = found
        self._pid = pid
        self._code = CodeMap(pid, found)
        self._frames = FrameRegisters(found, self._code)
        self._known: dict[tuple[int, int], _Known] = {}  # by pc and sp

    def blocked(self, tid: int) -> Unwound | None:
        """Return the stack of a thread that sleeps in the kernel; None if it runs, ran meanwhile,
        has ended, or may not be looked at. The thread notices nothing."""
        try:
            before = self._sleeps(tid)
            if before is None:
                return None
            found = self._of(before[0])
            return found if self._sleeps(tid) == before else None
        except (OSError, ValueError):
            return None

    def asleep(self, call: Call, still_sleeps: Callable[[], bool]) -> Unwound | None:
        """Return the stack of a thread that sleeps in this call, if it does so all the while."""
        try:
            found = self._of(call)
            return found if still_sleeps() else None
        except (OSError, ValueError):
            return None

    def _of(self, call: Call) -> Unwound:
        """What led the way once leads the same way again: threads come back to where they were."""
        self._code.refresh()
        known = self._known.get((call.pc, call.sp))
        if known and known.code == self._code.version and known.words.are_there(self._code.read):
            return known.unwound
        stack = Stack(self._code.read)
        found = self._unwound(stack, {self._machine.pc: call.pc, self._machine.sp: call.sp})
        words = stack.words()
        if words is not None:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            self._known[call.pc, call.sp] = _Known(self._code.version, words, found)
        return found

    def _sleeps(self, tid: int) -> tuple[Call, int] | None:
        """Where a thread sleeps, and how often it was put on a CPU before."""
        runs = procfs.thread_runs(self._pid, tid)
        call = syscalls.parse(procfs.thread_syscall(self._pid, tid))
        return None if call is None or not runs else (call, runs)

    def sampled(self, registers: Mapping[int, int], stack: bytes, sp: int) -> Unwound:
        """Return the stack of which a copy from ``sp`` on was made together with the registers, by
        DWARF's numbers (`Machine.of_perf`)."""
        try:
            self._code.refresh()
        except OSError:
            pass  # it has ended: as it was last
        if not {self._machine.pc, self._machine.sp} <= registers.keys():
            return Unwound((), complete=False, reason="no registers")
        return self._unwound(Stack.copied(sp, stack), dict(registers))

    def stopped(self, tid: int) -> Unwound | None:
        """Return the stack of a thread that is stopped for as long as it takes to copy its
        registers and its stack; None if it cannot be."""
        found = ptrace_stop.copy(self._pid, tid, self._machine)
        return None if found is None else self.sampled(*found)

    def _unwound(self, stack: Stack, registers: dict[int, int]) -> Unwound:
        return Walk(self._machine, self._code, self._frames, stack, registers).unwound()
