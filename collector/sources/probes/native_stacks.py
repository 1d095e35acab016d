"""Call stacks of threads, unwound from another process and named; each sleep is unwound once."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from locktop.collector.linux.syscalls import SystemCall
from locktop.collector.model import Frame
from locktop.collector.model.frames import CUT_WHEN_UNWOUND
from locktop.collector.symbols.resolver import Resolver

if TYPE_CHECKING:
    from locktop.collector.symbols.unwind.cursor import Unwound
    from locktop.collector.symbols.unwind.unwinder import Unwinder

#: The call in which a thread sleeps, and a check whether it still does.
SleepCheck = tuple[SystemCall, Callable[[], bool]]
#: Ids of unwound stacks begin here (model.Wait.stack).
FIRST_ID = 1 << 33
#: Ids of the stacks of holder_sampler.py begin here.
SAMPLES_FIRST_ID = 1 << 40
#: Frames inside the C library say nothing about a wait; their caller does.
_LIBC = re.compile(r"libc(\.so\.|-2\.)|\[vdso\]|ld-linux|libpthread")
#: The function that makes any system call for its caller.
_SYSCALL = "syscall"
_MAX_KEPT = 20_000
_MAX_ENDED = 256  # threads
#: Seconds for a running thread to be on a CPU once more.
_RUNNING_S = 0.01


class _Stack(NamedTuple):
    addresses: tuple[int, ...]
    complete: bool
    entered: bool  # see NativeStacks.stack_id()
    running: bool  # the thread runs: frames inside the C library matter


class NativeStacks:
    """The unwound stacks of one process. Thread ids are those of locktop's own pid namespace."""

    def __init__(self, pid: int, resolver: Resolver, may_stop: bool = False) -> None:
        """``may_stop``: stop a thread for a moment if its stack cannot be known otherwise."""
        self._pid = pid
        self._resolver = resolver
        self.may_stop = may_stop
        self._unwinder: Unwinder | None = None
        self._can_unwind = True
        self._until = self._budget_s = 0.0
        self._again: dict[SystemCall, Unwound] = {}  # of this scan, still valid
        #: By tid and ``entered``: the sleep, and the stack's id.
        self._of_sleep: dict[tuple[int, bool], tuple[object, int]] = {}
        self._stopped: set[int] = set()  # tids
        self._ids: dict[_Stack, int] = {}
        #: By ``entered``: the ids of stacks, by the object's id().
        self._ids_of: dict[bool, dict[int, tuple[Unwound, int]]] = {False: {}, True: {}}
        self._kept: OrderedDict[int, _Stack] = OrderedDict()  # least recently used first
        self._next = FIRST_ID
        #: Why running threads cannot be sampled; "" as far as they can.
        self.refused = ""
        #: all frames, visible frames
        self._frames: dict[int, tuple[tuple[Frame, ...], tuple[Frame, ...]]] = {}

    def unwinder(self) -> Unwinder | None:
        """Return the unwinder; None if no stack can be unwound."""
        return self._unwinder if self._is_ready() else None

    def prepare(self) -> None:
        """Load the unwinder, some 50 ms, so that the first request need not wait for it."""
        self._is_ready()

    def begin(self, budget_s: float) -> None:
        """Set the time for new stacks of this scan, beside the time to load the unwinder."""
        self._budget_s = budget_s
        self._until = time.monotonic() + budget_s
        self._again = {}

    def begin_again(self) -> None:
        """Set the same time anew, after work that took none of it."""
        self._until = time.monotonic() + self._budget_s

    def end_within(self, budget_s: float) -> None:
        """Limit the rest of the time that begin() set."""
        self._until = min(self._until, time.monotonic() + budget_s)

    @property
    def has_time(self) -> bool:
        """Whether this scan has time left for new stacks."""
        return time.monotonic() <= self._until

    def expect(self, calls: Iterable[SystemCall]) -> None:
        """Prepare stack_id() for threads that sleep in these calls.

        Only threads that are found asleep after this call may use the result.
        """
        if self._unwinder is not None:
            self._again = self._unwinder.cached_stacks(calls)

    def known_id(self, tid: int, sleep: object, entered: bool = False) -> int:
        """Return the id of the stack of a sleep, if stack_id() returned it before; else 0."""
        entry = self._of_sleep.get((tid, entered))
        if entry is None or entry[0] != sleep or entry[1] not in self._kept:
            return 0
        self._kept.move_to_end(entry[1])
        return entry[1]

    def stack_id(
        self, tid: int, sleep: object, entered: bool = False, asleep: SleepCheck | None = None
    ) -> int:
        """Return the id of the stack of a sleep; 0 if it is unknown, or no time is left.

        Args:
            tid: the thread.
            sleep: distinguishes the sleeps of the thread.
            entered: include functions that were called, also in the C library and those without a
                frame of their own (call_target.py).
            asleep: the call of the sleep, and a check that is made once the stack is read.
        """
        self._stopped.discard(tid)
        if stack_id := self.known_id(tid, sleep, entered):
            return stack_id
        again = self._again.get(asleep[0]) if asleep is not None else None
        takes_no_time = again is not None and (again.complete or not self.may_stop)
        if not (takes_no_time or self.has_time) or not self._is_ready():
            return 0
        unwound = self._sleeping_stack(tid, asleep)
        if unwound is None or not unwound.addresses:
            return 0
        stack_id = self._same_id(unwound, entered)
        self._of_sleep[tid, entered] = sleep, stack_id
        return stack_id

    def _sleeping_stack(self, tid: int, asleep: SleepCheck | None) -> Unwound | None:
        assert self._unwinder is not None
        if asleep is None:
            unwound = self._unwinder.blocked_stack(tid)
        else:
            unwound = self._again.get(asleep[0]) or self._unwinder.sleeping_stack(*asleep)
        if unwound is None or unwound.complete or not self.may_stop:
            return unwound
        stopped = self._unwinder.stopped_stack(tid)
        self._stopped.add(tid)  # also a thread that did not stop in time
        # The thread may have run meanwhile.
        addresses = unwound.addresses
        if stopped is None or stopped.addresses[: len(addresses)] != addresses:
            return unwound
        return stopped

    def running(self, tids: Sequence[int], budget_s: float = 0.0) -> dict[int, int]:
        """Return the ids of the stacks of running threads, by tid.

        The result lacks threads without a CPU in time. The kernel samples each thread. If the
        kernel refuses and ``may_stop`` is set, each thread is stopped instead.

        Args:
            tids: the threads.
            budget_s: seconds after which no more threads are sampled; the first few always are.
        """
        if not tids or not self._is_ready():
            return {}
        from locktop.collector.symbols.unwind.perf_sample import MAX_SAMPLED

        until = time.monotonic() + budget_s
        unwound: dict[int, Unwound] = {}
        for start in range(0, len(tids), MAX_SAMPLED):
            if start and time.monotonic() >= until:
                break
            unwound |= self._few_running(tids[start : start + MAX_SAMPLED])
            if self.refused:
                break
        return {
            tid: self._id(stack, running=True) for tid, stack in unwound.items() if stack.addresses
        }

    def _few_running(self, tids: Sequence[int]) -> dict[int, Unwound]:
        assert self._unwinder is not None
        from locktop.collector.symbols.unwind.perf_sample import RefusedError

        try:
            unwound = self._unwinder.running_stacks(tids, _RUNNING_S)
        except RefusedError as error:
            if not self.may_stop:
                self.refused = str(error)
                return {}
            stopped = {tid: self._unwinder.stopped_stack(tid) for tid in tids}
            return {tid: stack for tid, stack in stopped.items() if stack is not None}
        self.refused = ""
        return unwound

    def was_stopped(self, tid: int) -> bool:
        """Return whether the last call of stack_id() has put the thread on a CPU, to stop it.

        The thread had slept until then, and its stack is of that sleep.
        """
        return tid in self._stopped

    def keep_only(self, living: Collection[int]) -> None:
        """Drop the data of all other threads."""
        if len(self._of_sleep) > 2 * len(living) + _MAX_ENDED:
            alive = set(living)
            sleeps = self._of_sleep.items()
            self._of_sleep = {key: sleep for key, sleep in sleeps if key[0] in alive}
            if self._unwinder is not None:
                self._unwinder.keep_only(alive)

    def _add_entered(self, addresses: tuple[int, ...], unwound: tuple[int, ...]) -> tuple[int, ...]:
        """Add the functions that were called and left their frame to another function."""
        functions = self._unwinder.entered_functions(unwound) if self._unwinder else []
        for index, function in reversed(functions):
            addresses = (*addresses[:index], function + 1, *addresses[index:])
        return addresses

    def _is_ready(self) -> bool:
        """Return whether stacks can be unwound. The first call loads the unwinder."""
        if self._unwinder is None and self._can_unwind:
            began = time.monotonic()
            from locktop.collector.symbols.unwind.unwinder import Unwinder

            try:
                self._unwinder = Unwinder(self._pid)
            except LookupError:  # this processor is not known
                self._can_unwind = False
            self._until += time.monotonic() - began
        return self._can_unwind

    def _same_id(self, unwound: Unwound, entered: bool) -> int:
        """Return _id(), faster for an object that has an id already."""
        entry = self._ids_of[entered].get(id(unwound))
        if entry is not None and entry[1] in self._kept:
            self._kept.move_to_end(entry[1])
            return entry[1]
        if len(self._ids_of[entered]) >= _MAX_KEPT:
            self._ids_of[entered].clear()
        stack_id = self._id(unwound, entered=entered)
        self._ids_of[entered][id(unwound)] = unwound, stack_id
        return stack_id

    def _id(self, unwound: Unwound, entered: bool = False, running: bool = False) -> int:
        # For a return address the resolver takes the instruction before; an exact address must not
        # move.
        addresses = tuple(
            address + (index in unwound.exact) for index, address in enumerate(unwound.addresses)
        )
        if entered:
            addresses = self._add_entered(addresses, unwound.addresses)
        stack = _Stack(
            addresses=addresses, complete=unwound.complete, entered=entered, running=running
        )
        stack_id = self._ids.get(stack)
        if stack_id is None:
            stack_id = self._ids[stack] = self._next
            self._next += 1
            self._kept[stack_id] = stack
            if len(self._kept) > _MAX_KEPT:
                self._forget_oldest()
        self._kept.move_to_end(stack_id)
        return stack_id

    def _forget_oldest(self) -> None:
        id_, stack = self._kept.popitem(last=False)
        del self._ids[stack]
        self._frames.pop(id_, None)
        self._resolver.forget(id_)

    def frames(self, stack: int) -> tuple[Frame, ...]:
        """Return a stack's frames, innermost first.

        For a sleeping thread the frames of the C library before its first caller are left out. They
        stay if ``entered`` was set and they show more than a system call.
        """
        kept = self._kept.get(stack)
        if kept is None:
            return ()
        self._kept.move_to_end(stack)
        frames = self._resolver.stack(stack, kept.addresses)
        cached = self._frames.get(stack)
        if cached is not None and cached[0] is frames:
            return cached[1]
        visible = visible_frames(
            frames, running=kept.running, complete=kept.complete, entered=kept.entered
        )
        self._frames[stack] = frames, visible
        return visible


def visible_frames(
    frames: tuple[Frame, ...], *, running: bool, complete: bool, entered: bool = False
) -> tuple[Frame, ...]:
    """Return the frames of a stack that are shown, innermost first.

    Args:
        frames: all frames.
        running: the thread ran. Of a sleeping thread the frames of the C library are left out.
        complete: the stack could be followed up to where the thread began.
        entered: as of NativeStacks.stack_id(); such frames of the C library stay.
    """
    outer_frames = (index for index, frame in enumerate(frames) if not _LIBC.match(frame.module))
    inside = 0 if running else next(outer_frames, 0)
    if entered and inside and frames[inside - 1].function not in ("", _SYSCALL):
        inside = 0
    return frames[inside:] if complete else (*frames[inside:], CUT_WHEN_UNWOUND)
