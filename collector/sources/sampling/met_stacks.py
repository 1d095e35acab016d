"""The stacks of the waits that scans met, also of waits that are over.

A scan meets a wait with a chance in proportion to its duration. So each scan divides the time by
which the wait for a lock grew among the waits that the scan meets. The parts are estimates, as the
sum is.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from locktop.collector.model import Draft, Frame, Lock, Thread, WaitStack

#: Stacks of one lock. Waits with further stacks stay without one.
_MAX_STACKS = 100

#: A wait: the id of its thread, and its number.
_WaitKey = tuple[int, int]


class _StackSum(Struct):
    """The waits for one lock that had one stack."""

    count: int = 0
    wait_s: float = 0.0


class _LockSums(Struct):
    """The sums of one lock by stack."""

    divided_s: float = 0.0  # the part of the lock's wait that has been divided
    stacks: dict[int, _StackSum] = field(default_factory=dict)


class _MetWait(Struct):
    """A wait that goes on, and its part of the sums."""

    sums: _LockSums
    stack: int
    wait_s: float = 0.0


class MetStacks:
    """Adds up the stacks of waits over the scans of one program."""

    def __init__(self) -> None:
        self._locks: dict[int, _LockSums] = {}  # by id
        self._met: dict[_WaitKey, _MetWait] = {}

    def annotate(self, draft: Draft, frames: Callable[[int], tuple[Frame, ...]]) -> None:
        """Give the locks the stacks of all waits that scans met.

        Args:
            draft: The waits of the locks need not be classified yet.
            frames: returns the frames of a stack by its id; () if they are no longer known.
        """
        locks = {lock.id: lock for lock in draft.locks}
        self._locks = {id_: sums for id_, sums in self._locks.items() if id_ in locks}
        self._add(draft.threads, locks)
        missing = {stack for sums in self._locks.values() for stack in sums.stacks}
        past = {stack: frames(stack) for stack in sorted(missing - draft.stacks.keys())}
        draft.stacks = {**draft.stacks, **{id_: stack for id_, stack in past.items() if stack}}
        draft.locks = tuple(
            _lock_with_stacks(lock, self._locks[lock.id], draft.stacks)
            if lock.id in self._locks
            else lock
            for lock in draft.locks
        )

    def _add(self, threads: Iterable[Thread], locks: Mapping[int, Lock]) -> None:
        """Divide what the waits for each lock grew by among the waits that go on."""
        before, self._met = self._met, {}
        waits_of: dict[int, list[_MetWait]] = {}
        for thread in threads:
            wait = thread.waiting_for
            if wait is None or not wait.stack or wait.lock not in locks:
                continue
            met = before.get((thread.tid, wait.seq))
            # The lock may have been left out of the scan before, and its sums with it.
            if met is None or self._locks.get(wait.lock) is not met.sums:
                sums = self._locks.setdefault(wait.lock, _LockSums())
                met = _MetWait(sums=sums, stack=0)
            self._met[thread.tid, wait.seq] = met
            _move(met, wait.stack)
            if met.stack:
                waits_of.setdefault(wait.lock, []).append(met)
        for lock_id, waits in waits_of.items():
            sums, wait_s = self._locks[lock_id], locks[lock_id].wait_s
            part_s = max(0.0, wait_s - sums.divided_s) / len(waits)
            sums.divided_s = wait_s
            for met in waits:
                met.wait_s += part_s
                met.sums.stacks[met.stack].wait_s += part_s


def _move(met: _MetWait, stack: int) -> None:
    """Give a wait its stack. Functions of Python become known later, in another stack."""
    stacks = met.sums.stacks
    if met.stack == stack or (stack not in stacks and len(stacks) >= _MAX_STACKS):
        return
    if met.stack:
        former = stacks[met.stack]
        former.count -= 1
        former.wait_s -= met.wait_s
        if not former.count:
            del stacks[met.stack]
    met.stack = stack
    new = stacks.setdefault(stack, _StackSum())
    new.count += 1
    new.wait_s += met.wait_s


def _lock_with_stacks(lock: Lock, sums: _LockSums, stacks: Container[int]) -> Lock:
    """Return the lock with those of its stacks that the snapshot has, the longest wait first."""
    entries = [
        WaitStack(stack=stack, count=total.count, wait_s=max(0.0, total.wait_s))
        for stack, total in sums.stacks.items()
        if stack in stacks
    ]
    entries.sort(key=lambda entry: -entry.wait_s)
    return replace(lock, wait_stacks=tuple(entries))
