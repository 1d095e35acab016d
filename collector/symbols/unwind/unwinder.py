"""The call stacks of a process's threads, read from another process.

A stack is cut where its callers are not certain: the frames that remain are right.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from locktop.collector.linux import process_memory, procfs, syscalls
from locktop.collector.linux.syscalls import SystemCall
from locktop.collector.symbols.unwind import perf_sample, ptrace_stop
from locktop.collector.symbols.unwind.arch import Architecture, architecture
from locktop.collector.symbols.unwind.code_map import CodeMap
from locktop.collector.symbols.unwind.cursor import Unwound, Walk
from locktop.collector.symbols.unwind.stack_memory import (
    Read,
    StackCopy,
    StackCut,
    StackMemory,
    rest_of_page,
)
from locktop.collector.symbols.unwind.walk_cache import WalkCache
from locktop.collector.symbols.unwind.x86_64.call_target import entered_functions
from locktop.collector.symbols.unwind.x86_64.register_recovery import FrameRegisters

if TYPE_CHECKING:
    from locktop.collector.symbols.unwind.first_use import SoughtLock
    from locktop.collector.symbols.unwind.x86_64.next_use import UseFinder
    from locktop.collector.symbols.unwind.x86_64.pthread_once import OnceCode


class _StoppedThread(NamedTuple):
    """A thread that was stopped in a system call."""

    call: SystemCall
    stack: bytes  # the part that the walk read
    unwound: Unwound


class Unwinder:
    """Follows the stacks of one process. Ids are those of our own pid namespace.

    Raises:
        LookupError: The constructor raises it if the processor is not supported.
    """

    def __init__(
        self, pid: int, processor: Architecture | None = None, pause_s: float = 0.0
    ) -> None:
        """``pause_s``: see CodeMap."""
        architecture_ = processor or architecture()
        if architecture_ is None:
            raise LookupError("stacks of this processor cannot be followed")
        self._architecture = architecture_
        self._pid = pid
        self._code = CodeMap(pid, architecture_, pause_s)
        self._frames = FrameRegisters(architecture_, self._code)
        self._walks = WalkCache()
        self._version = 0  # of the code map that the walks are for
        self._stops: dict[int, _StoppedThread] = {}
        self._uses: UseFinder | None = None

    def blocked_stack(self, tid: int) -> Unwound | None:
        """Return the stack of a thread that sleeps in the kernel. The thread notices nothing.

        Returns:
            The stack; None if the thread runs, ran meanwhile, has ended, or may not be read.
        """
        try:
            before = self._sleeps(tid)
            if before is None:
                return None
            unwound = self._call_stack(before[0])
            return unwound if self._sleeps(tid) == before else None
        except (OSError, ValueError):
            return None

    def sleeping_stack(self, call: SystemCall, still_sleeps: Callable[[], bool]) -> Unwound | None:
        """Return the stack of a thread that sleeps in a call, if it sleeps all the while."""
        try:
            unwound = self._call_stack(call)
            return unwound if still_sleeps() else None
        except (OSError, ValueError):
            return None

    def first_use(self, tid: int, call: SystemCall, words: SoughtLock) -> tuple[int, bool] | None:
        """Return whether a thread that sleeps in a call goes on to release a lock.

        Args:
            tid: the id of the thread, in the pid namespace of the process.
            call: the call.
            words: the words of the lock.

        Returns:
            Where the innermost frame goes on whose code writes to a word, 0 without one, and
            whether that is a release. None if code of this processor is not known.

        Raises:
            OSError: the process may not be read.
        """
        registers = {self._architecture.pc: call.pc, self._architecture.sp: call.sp}
        stack = StackMemory(call.sp, self._code.read)
        self._refresh()
        return self._first_use(tid, stack, registers, words, self._code.read, first_frame=1)

    def running_first_uses(
        self, tids: Mapping[int, int], words: SoughtLock, patience_s: float
    ) -> dict[int, tuple[int, bool]]:
        """Return by tid the same of the threads that run within ``patience_s``.

        Args:
            tids: by the ids in our own pid namespace, those in that of the process.
            words: the words of the lock.
            patience_s: seconds.

        Raises:
            perf_sample.RefusedError: the kernel lets us take no samples.
            OSError: the process may not be read.
        """
        uses = {}
        self._refresh()
        for tid, copy in perf_sample.copies(tids, self._architecture, patience_s).items():
            if not {self._architecture.pc, self._architecture.sp} <= copy.registers.keys():
                continue
            stack = StackMemory.from_copy(copy.sp, copy.stack)
            read = copy.reader(self._code.read)
            use = self._first_use(tids[tid], stack, dict(copy.registers), words, read)
            if use is not None:
                uses[tids[tid]] = use
        return uses

    def _first_use(
        self,
        tid: int,
        stack: StackMemory,
        registers: dict[int, int],
        words: SoughtLock,
        read: Read,
        first_frame: int = 0,
    ) -> tuple[int, bool] | None:
        if self._architecture.name != "x86_64":
            return None
        # Here: iced_x86 takes 8 ms to import, and most programs do without.
        from locktop.collector.symbols.unwind.x86_64.next_use import UseFinder

        if self._uses is None:
            self._uses = UseFinder(self._code)
        walk = Walk(self._architecture, self._code, self._frames, stack, registers)
        addresses = walk.unwind().addresses
        frames = list(zip(addresses, walk.frame_registers(), strict=False))
        return self._uses.first_use(tid, frames[first_frame:], words, read)

    def cached_stacks(self, calls: Iterable[SystemCall]) -> dict[SystemCall, Unwound]:
        """Return the stacks of threads that sleep in calls, as far as the cache has such walks.

        All stacks are read at once. A stack is right if its thread sleeps all the while.
        """
        try:
            self._refresh()
        except OSError:
            return {}
        return self._cached_stacks(calls)

    def _refresh(self) -> None:
        """Drop walks if code lies elsewhere now. Raises OSError if the map may not be read."""
        self._code.refresh()
        if self._version != self._code.version:
            self._walks, self._version = WalkCache(), self._code.version
            self._uses = None

    def code_version(self) -> int:
        """Return a number that changes whenever code of the process lies elsewhere."""
        with contextlib.suppress(OSError):  # the process has ended: the last map holds
            self._code.refresh()
        return self._code.version

    def _cached_stacks(self, calls: Iterable[SystemCall]) -> dict[SystemCall, Unwound]:
        stacks: dict[SystemCall, Unwound] = {}
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
            for (call, minimum, size), stack in zip(wanted, read, strict=True):
                if not stack:
                    if size > minimum:  # the stack may end there
                        further.append((call, minimum, minimum))
                    continue
                answer = self._walks.find(call.pc, call.sp, stack)
                if isinstance(answer, Unwound):
                    stacks[call] = answer
                elif answer is not None:  # twice as much each time: a deep stack takes few reads
                    minimum = answer + rest_of_page(call.sp + answer)
                    further.append((call, minimum, max(minimum, 2 * size)))
            wanted = further
        return stacks

    def _call_stack(self, call: SystemCall) -> Unwound:
        """Return the stack of a thread in a call: from the cache, else by a walk."""
        self._refresh()
        if cached := self._cached_stacks([call]).get(call):
            return cached
        stack = StackMemory(call.sp, self._code.read)
        unwound = self._unwind(
            stack, {self._architecture.pc: call.pc, self._architecture.sp: call.sp}
        )
        if stack.answers is not None:
            self._walks.keep(call.pc, stack.answers, unwound)
        return unwound

    def entered_functions(self, addresses: Sequence[int]) -> list[tuple[int, int]]:
        """Return the functions of a stack without a frame, as the module call_target does."""
        return (
            entered_functions(self._code, addresses) if self._architecture.name == "x86_64" else []
        )

    def once_code(self, pc: int) -> OnceCode | None:
        """Return what the code of glibc's pthread_once says, if a thread sleeps in it at ``pc``."""
        # Here: few programs need the module, and it is for x86 alone.
        from locktop.collector.symbols.unwind.x86_64 import pthread_once

        if self._architecture.name != "x86_64":
            return None
        try:
            self._refresh()
            frame = self._code.frame_at(pc - 1)  # pc is behind the system call
            for name in pthread_once.NAMES:
                entry = frame.function_named(name)
                if entry is None:
                    continue
                leads_there = entry == frame.start or pthread_once.leads_to(
                    self._code.frame_at(entry).code(pthread_once.MAX_CODE), entry, frame.start
                )
                if leads_there:
                    return pthread_once.once_code(frame.code(pthread_once.MAX_CODE), frame.start)
        except (StackCut, OSError):
            pass
        return None

    def is_initialising(self, guard: int, acquired: int, returns: int) -> bool:
        """Return whether a frame certainly runs the initialiser of a static variable of C++.

        Args:
            guard: the address of the variable's guard.
            acquired: the return address of the call in which another thread waits for the guard.
            returns: the return address of the frame.
        """
        from locktop.collector.symbols.unwind.x86_64 import static_guard

        if self._architecture.name != "x86_64":
            return False
        try:
            self._refresh()
            return static_guard.is_initialising(self._code, guard, acquired, returns)
        except (StackCut, OSError):
            return False

    def _sleeps(self, tid: int) -> tuple[SystemCall, int] | None:
        """Return the call that a thread sleeps in, and how often the thread ran before."""
        runs = procfs.thread_runs(self._pid, tid)
        call = syscalls.parse(procfs.thread_syscall(self._pid, tid))
        return None if call is None or not runs else (call, runs)

    def sampled_stack(self, registers: Mapping[int, int], stack: bytes, sp: int) -> Unwound:
        """Return the stack of a copy.

        Args:
            registers: By DWARF's numbers (`Architecture.dwarf_registers`).
            stack: The bytes from ``sp`` on, copied together with the registers.
            sp: The stack pointer.
        """
        return self._follow(StackCopy(dict(registers), stack, sp))[0]

    def _follow(self, copy: StackCopy) -> tuple[Unwound, bytes]:
        """Return the stack of a copy, and the part of the copy that the walk read."""
        try:
            self._refresh()
        except OSError:
            pass  # the process has ended: the last map holds
        if not {self._architecture.pc, self._architecture.sp} <= copy.registers.keys():
            return Unwound((), complete=False, reason="no registers"), b""
        stack = StackMemory.from_copy(copy.sp, copy.stack)
        unwound = self._unwind(stack, dict(copy.registers))
        return unwound, copy.stack[: max(stack.end - copy.sp, 0)]

    def running_stacks(self, tids: Iterable[int], patience_s: float) -> dict[int, Unwound]:
        """Return the stacks by tid of the threads that run within ``patience_s``.

        Raises:
            perf_sample.RefusedError: The kernel lets us take no samples.
        """
        copies = perf_sample.copies(tids, self._architecture, patience_s)
        return {
            tid: self.sampled_stack(copy.registers, copy.stack, copy.sp)
            for tid, copy in copies.items()
        }

    def stopped_stack(self, tid: int) -> Unwound | None:
        """Stop a thread while its registers and its stack are copied, and return its stack.

        A thread that has not moved since is not stopped again: its system call would begin anew.

        Returns:
            The stack; None if the thread cannot be stopped.
        """
        call = self._call(tid)
        before = self._stops.get(tid)
        if before is not None and call is not None and self._is_unchanged(before, call):
            return before.unwound
        copy = ptrace_stop.copy(self._pid, tid, self._architecture)
        if copy is None:
            return None
        unwound, followed = self._follow(copy)
        self._stops.pop(tid, None)
        if call is not None and call.sp == copy.sp:
            self._stops[tid] = _StoppedThread(call, followed, unwound)
        return unwound

    def keep_only(self, tids: Collection[int]) -> None:
        """Forget all other threads."""
        self._stops = {tid: stop for tid, stop in self._stops.items() if tid in tids}

    def _call(self, tid: int) -> SystemCall | None:
        try:
            return syscalls.parse(procfs.thread_syscall(self._pid, tid))
        except (OSError, ValueError):
            return None

    def _is_unchanged(self, stop: _StoppedThread, call: SystemCall) -> bool:
        """Tell whether a thread is in the same call, with the same stack.

        A call that has begun anew may have another number (restart_syscall(2)).
        """
        if (call.arguments, call.pc, call.sp) != (stop.call.arguments, stop.call.pc, stop.call.sp):
            return False
        return process_memory.read(self._pid, call.sp, len(stop.stack)) == stop.stack

    def _unwind(self, stack: StackMemory, registers: dict[int, int]) -> Unwound:
        return Walk(self._architecture, self._code, self._frames, stack, registers).unwind()
