"""Call stacks of threads that sleep, taken from outside and named: each sleep is looked at once."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from locktop.collector.model import Frame
from locktop.collector.symbols.resolver import Resolver
from locktop.collector.syscalls import Call

if TYPE_CHECKING:
    from locktop.collector.unwind.unwinder import Unwinder
    from locktop.collector.unwind.walk import Unwound

#: In which call a thread sleeps, and what tells whether it still does.
Asleep = tuple[Call, Callable[[], bool]]
#: Ids of these, which no other stacks have (model.Wait.stack).
FIRST_ID = 1 << 33
#: Stands at the outer end of a stack that could not be followed further.
CUT = Frame(0, "(further callers are not known)", None, None, "", 0)
#: What a wait is made of inside the C library says nothing: who called it does.
_LIBC = re.compile(r"libc(\.so\.|-2\.)|\[vdso\]|ld-linux|libpthread")
_MOST_KEPT = 20_000


class OutsideStacks:
    """Of one process."""

    def __init__(self, pid: int, resolver: Resolver) -> None:
        self._pid = pid
        self._resolver = resolver
        self._unwinder: Unwinder | None = None
        self._can_unwind = True
        self._until = 0.0
        self._of_sleep: dict[int, tuple[object, int]] = {}  # by tid: which sleep, id
        self._ids: dict[tuple[tuple[int, ...], bool], int] = {}
        self._addresses: dict[int, tuple[tuple[int, ...], bool]] = {}

    def begin(self, budget_s: float) -> None:
        """A look begins, in which new stacks may take so long."""
        self._until = time.monotonic() + budget_s

    def of(self, kernel_tid: int, sleep: object, asleep: Asleep | None = None) -> int:
        """Return the id of the stack that a thread has in a sleep, which ``sleep`` tells from its
        others; 0 where it is not known, or no time was left for it. ``asleep``: what is known of
        the sleep already."""
        known = self._of_sleep.get(kernel_tid)
        if known is not None and known[0] == sleep:
            return known[1]
        if time.monotonic() > self._until or not self._is_ready():
            return 0
        unwound = self._unwound(kernel_tid, asleep)
        if unwound is None or not unwound.addresses:
            return 0
        # Of a return address the instruction before it is asked for.
        addresses = tuple(
            address + (at in unwound.exact) for at, address in enumerate(unwound.addresses)
        )
        found = self._id((addresses, unwound.complete))
        self._of_sleep[kernel_tid] = sleep, found
        return found

    def _unwound(self, kernel_tid: int, asleep: Asleep | None) -> Unwound | None:
        if self._unwinder is None:
            return None
        if asleep is None:
            return self._unwinder.blocked(kernel_tid)
        return self._unwinder.asleep(*asleep)

    def _is_ready(self) -> bool:
        """Whether stacks can be followed. The first frame does not wait for all that this needs."""
        if self._unwinder is None and self._can_unwind:
            from locktop.collector.unwind.unwinder import Unwinder

            try:
                self._unwinder = Unwinder(self._pid)
            except LookupError:  # this processor is not known
                self._can_unwind = False
        return self._can_unwind

    def _id(self, stack: tuple[tuple[int, ...], bool]) -> int:
        known = self._ids.get(stack)
        if known is None:
            if len(self._ids) >= _MOST_KEPT:
                self._ids.clear()  # their numbers are not used again
            known = self._ids[stack] = FIRST_ID + len(self._addresses)
            self._addresses[known] = stack
        return known

    def frames(self, stack: int) -> tuple[Frame, ...]:
        """Return a stack's frames, innermost first, without those of the C library that come before
        its first caller."""
        addresses, complete = self._addresses[stack]
        frames = self._resolver.stack(stack, addresses)
        inside = next((at for at, frame in enumerate(frames) if not _LIBC.match(frame.module)), 0)
        return frames[inside:] if complete else (*frames[inside:], CUT)
