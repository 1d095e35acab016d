"""What futexes are, by the functions of the threads that wait for them.

A futex is a word in memory: what lies there says nothing of whose lock it is. The function that
waits does. Which functions are known is data (idle.rules, type=); of a function of the C library
that waits for something of its own, its name is what is known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import takewhile

from msgspec.structs import replace

from locktop.collector.analysis.idle.rules import Rules
from locktop.collector.model import Draft, Frame, Kind, Lock

_LIBC = ("libc.so.", "libc-2.", "libpthread")
#: Calls the kernel for whoever asks it to: that says nothing.
_SYSCALL = "syscall"


class FutexTypes:
    """Tells them, look after look: what a lock was told to be it is still when nobody waits."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._of_stack: dict[int, tuple[Sequence[Frame], str]] = {}
        self._known: dict[tuple[int, int], str] = {}  # by id and generation of the lock
        self._locks: dict[int, tuple[Lock, Lock]] = {}  # as they came, as they left

    def annotate(self, snapshot: Draft) -> None:
        """Fill in the types of the futexes, as far as functions tell them.

        A lock that is named by its kind alone gets its type as its name.
        """
        if all(lock.kind is not Kind.FUTEX for lock in snapshot.locks):
            return
        now: dict[int, list[int]] = {}  # stacks by lock
        for thread in snapshot.threads:
            wait = thread.waiting_for
            if wait is not None and wait.kind is Kind.FUTEX:
                now.setdefault(wait.lock, []).append(wait.stack)
        self._of_stack = {
            stack: known
            for stack, known in self._of_stack.items()
            if snapshot.stacks.get(stack) is known[0]
        }
        before, self._locks = self._locks, {}
        locks = []
        for lock in snapshot.locks:
            typed = lock
            if lock.kind is Kind.FUTEX:
                word = self._word(lock, now.get(lock.id, ()), snapshot.stacks)
                typed = _typed(lock, word, before.get(lock.id))
                self._locks[lock.id] = lock, typed
            locks.append(typed)
        snapshot.locks = tuple(locks)

    def of(self, frames: Sequence[Frame]) -> str:
        """Return what is waited for in a stack, innermost first; "" where it does not tell."""
        return _of_libc(frames) or self._rules.type(frames)

    def _word(
        self, lock: Lock, now: Collection[int], stacks: Mapping[int, tuple[Frame, ...]]
    ) -> str:
        """Those that wait now tell it, else those that have waited."""
        found, key = self._words(now, stacks), (lock.id, lock.generation)
        if not found and _is_named(now, stacks):
            self._known.pop(key, None)  # what it was told to be before it is no more
        elif not found and key not in self._known:
            found = self._words((entry.stack for entry in lock.wait_stacks), stacks)
        if found:  # of several it is none: the memory may have been another lock's before
            self._known[key] = found.pop() if len(found) == 1 else ""
        return self._known.get(key, lock.type)

    def _words(self, ids: Iterable[int], stacks: Mapping[int, tuple[Frame, ...]]) -> set[str]:
        return {word for stack in ids if (word := self._of(stack, stacks.get(stack, ())))}

    def _of(self, stack: int, frames: Sequence[Frame]) -> str:
        known = self._of_stack.get(stack)
        if known is None or known[0] is not frames:
            known = self._of_stack[stack] = frames, self.of(frames)
        return known[1]


def _is_named(ids: Collection[int], stacks: Mapping[int, tuple[Frame, ...]]) -> bool:
    """Whether all functions of some stacks are known: then what they do not tell is not so."""
    frames = [frame for stack in ids for frame in stacks.get(stack, ())]
    return (
        all(stacks.get(stack) for stack in ids)
        and bool(frames)
        and all(frame.function for frame in frames)
    )


def _typed(lock: Lock, word: str, known: tuple[Lock, Lock] | None) -> Lock:
    """``known``: the lock as it came to the last look, and as it left."""
    if known is not None and known[0] is lock and known[1].type == word:
        return known[1]
    name = lock.name
    if word and name.startswith(f"{lock.kind} "):
        name = word + name.removeprefix(lock.kind)
    return lock if lock.type == word else replace(lock, type=word, name=name)


def _of_libc(frames: Sequence[Frame]) -> str:
    """By the function that its caller called: what that called inside seldom has a name."""
    function = ""
    for frame in takewhile(lambda frame: frame.module.startswith(_LIBC), frames):
        function = frame.function
    return f"libc's {function}" if function not in ("", _SYSCALL) else ""
