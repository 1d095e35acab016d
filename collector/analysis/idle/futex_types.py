"""The types of futexes, found by the functions of the threads that wait for them.

A futex is a word in memory, and its value does not say which lock it belongs to. The functions of
the waiting thread do. The known functions are data (idle.rules, ``type=``). If a function of the C
library waits for a lock of the library, the type is that function's name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import takewhile

from msgspec.structs import replace

from locktop.collector.analysis.idle import guarded_types
from locktop.collector.analysis.idle.guarded_types import GuardedType
from locktop.collector.analysis.idle.rules import Rules
from locktop.collector.model import Draft, Frame, Kind, Lock

_LIBC = ("libc.so.", "libc-2.", "libpthread")
#: A function that calls the kernel for any caller: its name says nothing.
_SYSCALL = "syscall"


class FutexTypes:
    """The types of the futexes of one process, kept from scan to scan. A futex keeps its type when
    no thread waits for it."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._of_stack: dict[int, tuple[Sequence[Frame], str]] = {}
        self._types: dict[tuple[int, int], str] = {}  # by id and generation of the lock
        self._guarded: dict[tuple[int, int], GuardedType] = {}  # the same
        self._locks: dict[int, tuple[Lock, Lock]] = {}  # by id, before and after

    def annotate(self, snapshot: Draft) -> None:
        """Fill in the known types of the futexes.

        A lock that is named by its kind is named by its type instead.
        """
        if all(lock.kind is not Kind.FUTEX for lock in snapshot.locks):
            return
        waiting: dict[int, list[int]] = {}  # stacks of the present waits, by lock
        for thread in snapshot.threads:
            wait = thread.waiting_for
            if wait is not None and wait.kind is Kind.FUTEX:
                waiting.setdefault(wait.lock, []).append(wait.stack)
        self._of_stack = {
            stack: cached
            for stack, cached in self._of_stack.items()
            if snapshot.stacks.get(stack) is cached[0]
        }
        before, self._locks = self._locks, {}
        locks = []
        for lock in snapshot.locks:
            typed = lock
            if lock.kind is Kind.FUTEX:
                type_ = self._type(lock, waiting.get(lock.id, ()), snapshot.stacks)
                guarded = self._guarded_type(lock, waiting.get(lock.id, ()), snapshot.stacks)
                typed = _set_type(lock, type_, guarded, before.get(lock.id))
                self._locks[lock.id] = lock, typed
            locks.append(typed)
        snapshot.locks = tuple(locks)

    def stack_type(self, frames: Sequence[Frame]) -> str:
        """Return the type of futex that a stack (innermost frame first) waits for; "" unknown."""
        return _libc_type(frames) or self._rules.type(frames)

    def _type(
        self, lock: Lock, waiting: Collection[int], stacks: Mapping[int, tuple[Frame, ...]]
    ) -> str:
        """Return the type that the present waits show, or else the waits that have ended."""
        types, key = self._types_of(waiting, stacks), (lock.id, lock.generation)
        if not types and _has_all_names(waiting, stacks):
            self._types.pop(key, None)  # the memory has another lock by now
            self._guarded.pop(key, None)
        elif not types and key not in self._types:
            types = self._types_of((entry.stack for entry in lock.wait_stacks), stacks)
        if types:  # several types give none: another lock may have been in that memory before
            self._types[key] = types.pop() if len(types) == 1 else ""
        return self._types.get(key, lock.type)

    def _guarded_type(
        self, lock: Lock, waiting: Iterable[int], stacks: Mapping[int, tuple[Frame, ...]]
    ) -> GuardedType | None:
        """Return what a lock guards. The names of lines may come later than those of functions."""
        key = lock.id, lock.generation
        if key not in self._guarded:
            of_waits = (guarded_types.find(stacks.get(stack, ())) for stack in waiting)
            guarded = next(filter(None, of_waits), None)
            if guarded is None:
                return None
            self._guarded[key] = guarded
        return self._guarded[key]

    def _types_of(self, ids: Iterable[int], stacks: Mapping[int, tuple[Frame, ...]]) -> set[str]:
        return {type_ for id_ in ids if (type_ := self._cached_type(id_, stacks.get(id_, ())))}

    def _cached_type(self, stack: int, frames: Sequence[Frame]) -> str:
        cached = self._of_stack.get(stack)
        if cached is None or cached[0] is not frames:
            cached = self._of_stack[stack] = frames, self.stack_type(frames)
        return cached[1]


def _has_all_names(ids: Collection[int], stacks: Mapping[int, tuple[Frame, ...]]) -> bool:
    """Return whether all functions of some stacks have names, so that no type is still hidden."""
    frames = [frame for stack in ids for frame in stacks.get(stack, ())]
    return (
        all(stacks.get(stack) for stack in ids)
        and bool(frames)
        and all(frame.function for frame in frames)
    )


def _set_type(
    lock: Lock, type_: str, guarded: GuardedType | None, former: tuple[Lock, Lock] | None
) -> Lock:
    """Return the lock with its type. ``former``: the lock before and after the last scan."""
    name = lock.name
    if type_ and name.startswith(f"{lock.kind} "):
        name = _typed_name(type_, guarded, name.removeprefix(lock.kind))
    if former is not None and former[0] is lock:
        typed = former[1]
        if (typed.type, typed.name) == (type_, name):
            return typed
    return lock if lock.type == type_ else replace(lock, type=type_, name=name)


def _typed_name(type_: str, guarded: GuardedType | None, location: str) -> str:
    """Return the name of a lock by its type. ``location``: of its waiters, with a blank before."""
    if guarded is None:
        return type_ + location
    text = f"{type_}<{guarded.text}>"
    return text if guarded.is_own else text + location


def _libc_type(frames: Sequence[Frame]) -> str:
    """Return the type by the outermost function of the C library. The functions that the library
    calls inside seldom have names."""
    function = ""
    for frame in takewhile(lambda frame: frame.module.startswith(_LIBC), frames):
        function = frame.function
    return f"libc's {function}" if function not in ("", _SYSCALL) else ""
