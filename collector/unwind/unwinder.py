"""The call stacks of one process's threads, from outside.

Whatever is not known for certain cuts a stack short: what is shown of it is so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from locktop.collector.linux import process_memory, procfs, syscalls
from locktop.collector.linux.syscalls import SystemCall
from locktop.collector.unwind import perf_sample, ptrace_stop
from locktop.collector.unwind.arch import Machine, machine
from locktop.collector.unwind.code_map import CodeMap
from locktop.collector.unwind.cursor import Unwound, Walk
from locktop.collector.unwind.stack_memory import Copy, Stack, rest_of_page
from locktop.collector.unwind.truncation import Cut
from locktop.collector.unwind.walk_cache import Walks
from locktop.collector.unwind.x86_64.call_target import entered
from locktop.collector.unwind.x86_64.register_recovery import FrameRegisters

if TYPE_CHECKING:
    from locktop.collector.unwind.x86_64.pthread_once import OnceCode


class _Stop(NamedTuple):
    """What was seen of a thread in a system call, when it was stopped there."""

    call: SystemCall
    stack: bytes  # as far as it was followed
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
        self._walks = Walks()
        self._version = 0  # of the code map, for which they are
        self._stops: dict[int, _Stop] = {}

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

    def asleep(self, call: SystemCall, still_sleeps: Callable[[], bool]) -> Unwound | None:
        """Return the stack of a thread that sleeps in this call, if it does so all the while."""
        try:
            found = self._of(call)
            return found if still_sleeps() else None
        except (OSError, ValueError):
            return None

    def again(self, calls: Iterable[SystemCall]) -> dict[SystemCall, Unwound]:
        """Return the stacks that threads have in these calls as far as such walks were made before:
        the stacks are read all at once. Each is so if its thread sleeps all the while."""
        try:
            self._refresh()
        except OSError:
            return {}
        return self._again(calls)

    def _refresh(self) -> None:
        """Let go of walks through code that lies elsewhere now. Raises OSError where that may not
        be seen."""
        self._code.refresh()
        if self._version != self._code.version:
            self._walks, self._version = Walks(), self._code.version

    def _again(self, calls: Iterable[SystemCall]) -> dict[SystemCall, Unwound]:
        found: dict[SystemCall, Unwound] = {}
        wanted = [
            (call, size, size)
            for call in calls
            if call.pc in self._walks and (size := rest_of_page(call.sp))
        ]
        while wanted:
            read = process_memory.read_many(
                self._pid, [(call.sp, size) for call, _, size in wanted]
            )
            further = []
            for (call, least, size), stack in zip(wanted, read, strict=True):
                if not stack:
                    if size > least:  # the stack may end there
                        further.append((call, least, least))
                    continue
                one = self._walks.find(call.pc, call.sp, stack)
                if isinstance(one, Unwound):
                    found[call] = one
                elif one is not None:  # each time twice as much: else a deep one takes for ever
                    least = one + rest_of_page(call.sp + one)
                    further.append((call, least, max(least, 2 * size)))
            wanted = further
        return found

    def _of(self, call: SystemCall) -> Unwound:
        """What led the way once leads the same way again: threads come back to where they were, or
        to where others have been."""
        self._refresh()
        if known := self._again([call]).get(call):
            return known
        stack = Stack(call.sp, self._code.read)
        found = self._unwound(stack, {self._machine.pc: call.pc, self._machine.sp: call.sp})
        if stack.told is not None:
            self._walks.keep(call.pc, stack.told, found)
        return found

    def entered(self, addresses: Sequence[int]) -> list[tuple[int, int]]:
        """Return the functions of a stack that have no frame (call_target.py)."""
        return entered(self._code, addresses) if self._machine.name == "x86_64" else []

    def once(self, pc: int) -> OnceCode | None:
        """Return what is told of the function that a thread sleeps in, if it is the one where
        glibc's pthread_once waits."""
        # Here: few programs need it, and it is for x86 alone.
        from locktop.collector.unwind.x86_64 import pthread_once

        if self._machine.name != "x86_64":
            return None
        try:
            self._refresh()
            place = self._code.place(pc - 1)  # behind the instruction that calls the kernel
            for name in pthread_once.NAMES:
                entry = place.function_named(name)
                if entry is None:
                    continue
                leads_there = entry == place.start or pthread_once.is_left_for(
                    self._code.place(entry).code(pthread_once.MAX_CODE), entry, place.start
                )
                if leads_there:
                    return pthread_once.once_code(place.code(pthread_once.MAX_CODE), place.start)
        except (Cut, OSError):
            pass
        return None

    def _sleeps(self, tid: int) -> tuple[SystemCall, int] | None:
        """Where a thread sleeps, and how often it was put on a CPU before."""
        runs = procfs.thread_runs(self._pid, tid)
        call = syscalls.parse(procfs.thread_syscall(self._pid, tid))
        return None if call is None or not runs else (call, runs)

    def sampled(self, registers: Mapping[int, int], stack: bytes, sp: int) -> Unwound:
        """Return the stack of which a copy from ``sp`` on was made together with the registers, by
        DWARF's numbers (`Machine.of_perf`)."""
        return self._followed(Copy(dict(registers), stack, sp))[0]

    def _followed(self, copy: Copy) -> tuple[Unwound, bytes]:
        """The stack, and as much of its copy as that took."""
        try:
            self._refresh()
        except OSError:
            pass  # it has ended: as it was last
        if not {self._machine.pc, self._machine.sp} <= copy.registers.keys():
            return Unwound((), complete=False, reason="no registers"), b""
        stack = Stack.copied(copy.sp, copy.stack)
        found = self._unwound(stack, dict(copy.registers))
        return found, copy.stack[: max(stack.end - copy.sp, 0)]

    def running(self, tids: Iterable[int], patience_s: float) -> dict[int, Unwound]:
        """Return by tid the stacks of threads that run, of those that are on a CPU within so long.
        Raises perf_sample.RefusedError."""
        copies = perf_sample.copies(tids, self._machine, patience_s)
        return {tid: self.sampled(*copy) for tid, copy in copies.items()}

    def stopped(self, tid: int) -> Unwound | None:
        """Return the stack of a thread that is stopped for as long as it takes to copy its
        registers and its stack; None if it cannot be. One that has not moved since is not stopped
        again: each time its system call would begin anew."""
        call = self._call(tid)
        before = self._stops.get(tid)
        if before is not None and call is not None and self._is_there_still(before, call):
            return before.unwound
        copy = ptrace_stop.copy(self._pid, tid, self._machine)
        if copy is None:
            return None
        found, followed = self._followed(copy)
        self._stops.pop(tid, None)
        if call is not None and call.sp == copy.sp:
            self._stops[tid] = _Stop(call, followed, found)
        return found

    def keep_only(self, tids: Collection[int]) -> None:
        """Let go of what is kept of all other threads."""
        self._stops = {tid: stop for tid, stop in self._stops.items() if tid in tids}

    def _call(self, tid: int) -> SystemCall | None:
        try:
            return syscalls.parse(procfs.thread_syscall(self._pid, tid))
        except (OSError, ValueError):
            return None

    def _is_there_still(self, stop: _Stop, call: SystemCall) -> bool:
        """Whether a thread is in the same call from the same callers: the stack is as it was, all
        the way. A call that has begun anew may have another number (restart_syscall(2))."""
        if (call.arguments, call.pc, call.sp) != (stop.call.arguments, stop.call.pc, stop.call.sp):
            return False
        return process_memory.read(self._pid, call.sp, len(stop.stack)) == stop.stack

    def _unwound(self, stack: Stack, registers: dict[int, int]) -> Unwound:
        return Walk(self._machine, self._code, self._frames, stack, registers).unwound()
