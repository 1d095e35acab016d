"""Call stacks of threads, taken from outside and named: each sleep is looked at once."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from locktop.collector.linux.syscalls import SystemCall
from locktop.collector.model import Frame
from locktop.collector.symbols.resolver import Resolver

if TYPE_CHECKING:
    from locktop.collector.unwind.cursor import Unwound
    from locktop.collector.unwind.unwinder import Unwinder

#: In which call a thread sleeps, and what tells whether it still does.
Asleep = tuple[SystemCall, Callable[[], bool]]
#: Ids of these, which no other stacks have (model.Wait.stack).
FIRST_ID = 1 << 33
#: Stands at the outer end of a stack that could not be followed further.
CUT = Frame(0, "(further callers are not known)", None, None, "", 0)
#: What a wait is made of inside the C library says nothing: who called it does.
_LIBC = re.compile(r"libc(\.so\.|-2\.)|\[vdso\]|ld-linux|libpthread")
#: Calls the kernel for whoever asks it to.
_SYSCALL = "syscall"
_MAX_KEPT = 20_000
_MAX_ENDED = 256  # threads
#: For a thread that runs to be on a CPU once more.
_RUNNING_S = 0.01


class _Stack(NamedTuple):
    addresses: tuple[int, ...]
    complete: bool
    entered: bool  # see OutsideStacks.of()
    running: bool  # what it does inside the C library is what it does


class NativeStacks:
    """Of one process. Thread ids are those of our own pid namespace."""

    def __init__(self, pid: int, resolver: Resolver, may_stop: bool = False) -> None:
        """``may_stop``: stop a thread for a moment where its stack cannot be known otherwise."""
        self._pid = pid
        self._resolver = resolver
        self.may_stop = may_stop
        self._unwinder: Unwinder | None = None
        self._can_unwind = True
        self._until = 0.0
        self._again: dict[SystemCall, Unwound] = {}  # in this look: stacks that are there again
        #: By tid, and whether functions that were called are frames: which sleep, the stack's id.
        self._of_sleep: dict[tuple[int, bool], tuple[object, int]] = {}
        self._stopped: set[int] = set()  # tids
        self._ids: dict[_Stack, int] = {}
        #: By whether functions that were called are frames: those of stacks, by the object's id().
        self._ids_of: dict[bool, dict[int, tuple[Unwound, int]]] = {False: {}, True: {}}
        self._kept: OrderedDict[int, _Stack] = OrderedDict()  # last used last
        self._next = FIRST_ID
        #: Why threads that run cannot be sampled, "" as far as they can be.
        self.refused = ""
        self._frames: dict[int, tuple[tuple[Frame, ...], tuple[Frame, ...]]] = {}  # all, shown

    def unwinder(self) -> Unwinder | None:
        """Return what follows the stacks; None where nothing can."""
        return self._unwinder if self._is_ready() else None

    def prepare(self) -> None:
        """Load what it takes to follow stacks, some 50 ms, while there is time: else the first one
        that is asked for waits for it."""
        self._is_ready()

    def begin(self, budget_s: float) -> None:
        """New stacks may take so long from now on, but for what the very first one needs."""
        self._until = time.monotonic() + budget_s
        self._again = {}

    def end_within(self, budget_s: float) -> None:
        """New stacks may take no longer than this from now on, and what is left of begin()."""
        self._until = min(self._until, time.monotonic() + budget_s)

    @property
    def has_time(self) -> bool:
        """Whether there is time left in this look for new stacks."""
        return time.monotonic() <= self._until

    def expect(self, calls: Iterable[SystemCall]) -> None:
        """Prepare for of() to be asked in this look for threads that sleep in these calls: only for
        those that are found to have slept on after this."""
        if self._unwinder is not None:
            self._again = self._unwinder.again(calls)

    def known(self, tid: int, sleep: object, entered: bool = False) -> int:
        """Return the id of the stack that a thread has in a sleep, if of() has told it; else 0."""
        known = self._of_sleep.get((tid, entered))
        if known is None or known[0] != sleep or known[1] not in self._kept:
            return 0
        self._kept.move_to_end(known[1])
        return known[1]

    def of(
        self, tid: int, sleep: object, entered: bool = False, asleep: Asleep | None = None
    ) -> int:
        """Return the id of the stack that a thread has in a sleep, which ``sleep`` tells from its
        others; 0 where it is not known, or no time was left for it. ``entered``: functions
        that were called are to be frames of it, also those of the C library, and those that have
        none any more (call_target.py); ``asleep``: what is known of the sleep already."""
        if found := self.known(tid, sleep, entered):
            return found
        self._stopped.discard(tid)
        again = self._again.get(asleep[0]) if asleep is not None else None
        takes_no_time = again is not None and (again.complete or not self.may_stop)
        if not (takes_no_time or self.has_time) or not self._is_ready():
            return 0
        unwound = self._asleep(tid, asleep)
        if unwound is None or not unwound.addresses:
            return 0
        found = self._same_id(unwound, entered)
        self._of_sleep[tid, entered] = sleep, found
        return found

    def _asleep(self, tid: int, asleep: Asleep | None) -> Unwound | None:
        assert self._unwinder is not None
        if asleep is None:
            unwound = self._unwinder.blocked(tid)
        else:
            unwound = self._again.get(asleep[0]) or self._unwinder.asleep(*asleep)
        if unwound is None or unwound.complete or not self.may_stop:
            return unwound
        stopped = self._unwinder.stopped(tid)
        # It may have gone on in between.
        known = unwound.addresses
        if stopped is None or stopped.addresses[: len(known)] != known:
            return unwound
        self._stopped.add(tid)
        return stopped

    def running(self, tids: Sequence[int]) -> dict[int, int]:
        """Return by tid the ids of stacks that threads have which run now; of those that get no CPU
        in time, and of more than a few, there are none. What each does is sampled, not stopped,
        unless it may be stopped and the kernel lets nobody sample."""
        if not tids or not self._is_ready():
            return {}
        assert self._unwinder is not None
        from locktop.collector.unwind.perf_sample import MAX_SAMPLED, RefusedError

        unwound: dict[int, Unwound] = {}
        try:
            unwound = self._unwinder.running(tids[:MAX_SAMPLED], _RUNNING_S)
            self.refused = ""
        except RefusedError as error:
            if self.may_stop:
                stopped = {tid: self._unwinder.stopped(tid) for tid in tids[:MAX_SAMPLED]}
                unwound = {tid: one for tid, one in stopped.items() if one is not None}
            else:
                self.refused = str(error)
        return {tid: self._id(one, running=True) for tid, one in unwound.items() if one.addresses}

    def was_stopped(self, tid: int) -> bool:
        """Tell whether the thread was stopped when it was last asked of() for a stack."""
        return tid in self._stopped

    def keep_only(self, living: Collection[int]) -> None:
        """Let go of what is known of all other threads."""
        if len(self._of_sleep) > 2 * len(living) + _MAX_ENDED:
            alive = set(living)
            known = self._of_sleep.items()
            self._of_sleep = {key: sleep for key, sleep in known if key[0] in alive}
            if self._unwinder is not None:
                self._unwinder.keep_only(alive)

    def _with_entered(
        self, addresses: tuple[int, ...], unwound: tuple[int, ...]
    ) -> tuple[int, ...]:
        """With the functions that were called and have left their frame to another."""
        found = self._unwinder.entered(unwound) if self._unwinder else []
        for at, function in reversed(found):
            addresses = (*addresses[:at], function + 1, *addresses[at:])
        return addresses

    def _is_ready(self) -> bool:
        """Whether stacks can be followed. The first frame does not wait for all that this needs."""
        if self._unwinder is None and self._can_unwind:
            began = time.monotonic()
            from locktop.collector.unwind.unwinder import Unwinder

            try:
                self._unwinder = Unwinder(self._pid)
            except LookupError:  # this processor is not known
                self._can_unwind = False
            self._until += time.monotonic() - began
        return self._can_unwind

    def _same_id(self, unwound: Unwound, entered: bool) -> int:
        """As _id(), in fewer steps for an object that was given one already."""
        known = self._ids_of[entered].get(id(unwound))
        if known is not None and known[1] in self._kept:
            self._kept.move_to_end(known[1])
            return known[1]
        if len(self._ids_of[entered]) >= _MAX_KEPT:
            self._ids_of[entered].clear()
        found = self._id(unwound, entered=entered)
        self._ids_of[entered][id(unwound)] = unwound, found
        return found

    def _id(self, unwound: Unwound, entered: bool = False, running: bool = False) -> int:
        # Of a return address the instruction before it is asked for.
        addresses = tuple(
            address + (at in unwound.exact) for at, address in enumerate(unwound.addresses)
        )
        if entered:
            addresses = self._with_entered(addresses, unwound.addresses)
        stack = _Stack(addresses, unwound.complete, entered, running)
        known = self._ids.get(stack)
        if known is None:
            known = self._ids[stack] = self._next
            self._next += 1
            self._kept[known] = stack
            if len(self._kept) > _MAX_KEPT:
                self._forget_oldest()
        self._kept.move_to_end(known)
        return known

    def _forget_oldest(self) -> None:
        id_, stack = self._kept.popitem(last=False)
        del self._ids[stack]
        self._frames.pop(id_, None)
        self._resolver.forget(id_)

    def frames(self, stack: int) -> tuple[Frame, ...]:
        """Return a stack's frames, innermost first, of a thread that sleeps without those of the C
        library that come before its first caller, unless they were asked for and say more than that
        the kernel was called."""
        found = self._kept.get(stack)
        if found is None:
            return ()
        self._kept.move_to_end(stack)
        frames = self._resolver.stack(stack, found.addresses)
        known = self._frames.get(stack)
        if known is not None and known[0] is frames:
            return known[1]
        native_stacks = (at for at, frame in enumerate(frames) if not _LIBC.match(frame.module))
        inside = 0 if found.running else next(native_stacks, 0)
        if found.entered and inside and frames[inside - 1].function not in ("", _SYSCALL):
            inside = 0
        shown = frames[inside:] if found.complete else (*frames[inside:], CUT)
        self._frames[stack] = frames, shown
        return shown
