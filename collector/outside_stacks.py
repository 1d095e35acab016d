"""Call stacks of threads that sleep, taken from outside and named: each sleep is looked at once."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, NamedTuple

from locktop.collector.model import Frame
from locktop.collector.symbols.resolver import Resolver

if TYPE_CHECKING:
    from locktop.collector.unwind.unwinder import Unwinder

#: Ids of these, which no other stacks have (model.Wait.stack).
FIRST_ID = 1 << 33
#: Stands at the outer end of a stack that could not be followed further.
CUT = Frame(0, "(further callers are not known)", None, None, "", 0)
#: What a wait is made of inside the C library says nothing: who called it does.
_LIBC = re.compile(r"libc(\.so\.|-2\.)|\[vdso\]|ld-linux|libpthread")
#: Calls the kernel for whoever asks it to.
_SYSCALL = "syscall"
_MOST_KEPT = 20_000


class _Stack(NamedTuple):
    addresses: tuple[int, ...]
    complete: bool
    entered: bool  # see OutsideStacks.of()


class OutsideStacks:
    """Of one process."""

    def __init__(self, pid: int, resolver: Resolver) -> None:
        self._pid = pid
        self._resolver = resolver
        self._unwinder: Unwinder | None = None
        self._can_unwind = True
        self._until = 0.0
        #: By tid, and whether functions that were called are frames: which sleep, id.
        self._of_sleep: dict[tuple[int, bool], tuple[object, int]] = {}
        self._ids: dict[_Stack, int] = {}
        self._stacks: dict[int, _Stack] = {}
        self._frames: dict[int, tuple[tuple[Frame, ...], tuple[Frame, ...]]] = {}  # all, shown

    def unwinder(self) -> Unwinder | None:
        """Return what follows the stacks; None where nothing can."""
        return self._unwinder if self._is_ready() else None

    def begin(self, budget_s: float) -> None:
        """A look begins, in which new stacks may take so long."""
        self._until = time.monotonic() + budget_s

    def of(self, kernel_tid: int, sleep: object, entered: bool = False) -> int:
        """Return the id of the stack that a thread has in a sleep, which ``sleep`` tells from its
        others; 0 where it is not known, or no time was left for it. ``entered``: functions
        that were called are to be frames of it, also those of the C library, and those that have
        none any more (unwind/entered.py)."""
        known = self._of_sleep.get((kernel_tid, entered))
        if known is not None and known[0] == sleep:
            return known[1]
        if time.monotonic() > self._until or not self._is_ready():
            return 0
        unwound = self._unwinder.blocked(kernel_tid) if self._unwinder else None
        if unwound is None or not unwound.addresses:
            return 0
        # Of a return address the instruction before it is asked for.
        addresses = tuple(
            address + (at in unwound.exact) for at, address in enumerate(unwound.addresses)
        )
        if entered:
            addresses = self._with_entered(addresses, unwound.addresses)
        found = self._id(_Stack(addresses, unwound.complete, entered))
        self._of_sleep[kernel_tid, entered] = sleep, found
        return found

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
            from locktop.collector.unwind.unwinder import Unwinder

            try:
                self._unwinder = Unwinder(self._pid)
            except LookupError:  # this processor is not known
                self._can_unwind = False
        return self._can_unwind

    def _id(self, stack: _Stack) -> int:
        known = self._ids.get(stack)
        if known is None:
            if len(self._ids) >= _MOST_KEPT:
                self._ids.clear()  # their numbers are not used again
            known = self._ids[stack] = FIRST_ID + len(self._stacks)
            self._stacks[known] = stack
        return known

    def frames(self, stack: int) -> tuple[Frame, ...]:
        """Return a stack's frames, innermost first, without those of the C library that come before
        its first caller, unless they were asked for and say more than that the kernel was called.
        """
        found = self._stacks[stack]
        frames = self._resolver.stack(stack, found.addresses)
        known = self._frames.get(stack)
        if known is not None and known[0] is frames:
            return known[1]
        inside = next((at for at, frame in enumerate(frames) if not _LIBC.match(frame.module)), 0)
        if found.entered and inside and frames[inside - 1].function not in ("", _SYSCALL):
            inside = 0
        shown = frames[inside:] if found.complete else (*frames[inside:], CUT)
        self._frames[stack] = frames, shown
        return shown
