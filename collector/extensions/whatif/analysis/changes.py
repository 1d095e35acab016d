"""Applies a change to a simulated program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from random import Random

from msgspec.structs import replace

from locktop.collector.extensions.whatif.analysis.background import change_cpus
from locktop.collector.extensions.whatif.analysis.simulated_program import (
    Do,
    LockModel,
    LockType,
    Operation,
    Program,
    ThreadModel,
)
from locktop.collector.extensions.whatif.model import Change, ChangeKind

_TIMED = (Do.COMPUTE, Do.SLEEP)
_TAKEN = (Do.TAKE, Do.SHARE)
_SIGNALS = (Do.WAIT, Do.POST)
_OF_LOCKS = (*_TAKEN, Do.RELEASE, *_SIGNALS)
#: For each round, so few signals to one thread are left out.
_FEW_SIGNALS = 0.02


def changed(program: Program, change: Change) -> Program:
    """Return the program after a change."""
    if change.kind is ChangeKind.CPUS:
        return change_cpus(program, max(1, round(change.amount)))
    if change.kind is ChangeKind.THREADS:
        return _change_threads(program, change.group, max(1, round(change.amount)))
    index = next((n for n, lock in enumerate(program.locks) if lock.lock == change.lock), None)
    if index is None:
        return program
    if change.kind is ChangeKind.HOLD:
        threads = (_scale_times(thread, index, change.amount) for thread in program.threads)
        return replace(program, threads=tuple(threads))
    if change.kind is ChangeKind.SPLIT:
        return _split(program, index, max(1, round(change.amount)))
    return _share_reads(program, index, change.amount)


def _scale_times(thread: ThreadModel, lock: int, factor: float) -> ThreadModel:
    """Return the thread with other times while it holds the lock."""
    held, operations = 0, []
    for operation in thread.operations:
        if operation.lock == lock and operation.do in _TAKEN:
            held += 1
        elif operation.lock == lock and operation.do == Do.RELEASE:
            held -= 1
        is_inside = held > 0 and operation.do in _TIMED
        operations.append(
            operation._replace(amount=round(operation.amount * factor)) if is_inside else operation
        )
    return replace(thread, operations=tuple(operations))


def _split(program: Program, lock: int, count: int) -> Program:
    """Return the program with ``count`` locks in place of one."""
    random = Random(lock)
    last = len(program.locks)
    choices = (lock, *range(last, last + count - 1))
    threads = []
    for thread in program.threads:
        chosen, operations = lock, []
        for operation in thread.operations:
            is_of_lock = operation.lock == lock and operation.do in (*_TAKEN, Do.RELEASE)
            if is_of_lock and operation.do != Do.RELEASE:
                chosen = random.choice(choices)
            operations.append(operation._replace(lock=chosen) if is_of_lock else operation)
        threads.append(replace(thread, operations=tuple(operations)))
    more = (program.locks[lock],) * (count - 1)
    return replace(program, threads=tuple(threads), locks=(*program.locks, *more))


def _share_reads(program: Program, lock: int, share: float) -> Program:
    """Return the program with an rwlock, which the share of the acquisitions reads."""
    random = Random(lock)
    threads = []
    for thread in program.threads:
        operations = [
            operation._replace(do=Do.SHARE)
            if operation.lock == lock and operation.do == Do.TAKE and random.random() < share
            else operation
            for operation in thread.operations
        ]
        threads.append(replace(thread, operations=tuple(operations)))
    locks = list(program.locks)
    locks[lock] = replace(locks[lock], type=LockType.RWLOCK)
    return replace(program, threads=tuple(threads), locks=tuple(locks))


def is_dependent(program: Program, group: str) -> bool:
    """Return whether threads of a group and others end each other's waits, one by one.

    The replay knows who woke whom, but not whom another number of threads would wake.
    """
    rounds = signals = 0
    for thread in _members(program, group):
        for do, lock, _ in thread.operations:
            rounds += do == Do.ROUND
            signals += do in _SIGNALS and program.locks[lock].waiter != 0
    return signals > _FEW_SIGNALS * rounds


def _members(program: Program, group: str) -> list[ThreadModel]:
    """Return the threads of a group in the role that most of them have; none: no such group.

    Programs give threads of several roles one name. A program has many workers, but one thread that
    hands out the work.
    """
    roles = Counter(thread.role for thread in program.threads if thread.group == group)
    if not roles:
        return []
    [(role, _)] = roles.most_common(1)
    return [thread for thread in program.threads if (thread.group, thread.role) == (group, role)]


def _change_threads(program: Program, group: str, count: int) -> Program:
    """Return the program with another number of threads in a group."""
    present = _members(program, group)
    if not present:
        return program
    tids = {thread.tid for thread in present}
    others = [thread for thread in program.threads if thread not in present]
    locks = list(program.locks)
    own = _locks_of_one(program)
    copies = [
        _copy(present[number % len(present)], locks, own) for number in range(len(present), count)
    ]
    # The few signals from one of these threads to another one are left out.
    threads = [
        replace(thread, operations=_drop_signals(locks, thread, tids))
        for thread in (*others, *present[:count], *copies)
    ]
    return replace(program, threads=tuple(threads), locks=_met(locks, threads))


def _locks_of_one(program: Program) -> set[int]:
    """Return the indexes of the locks that only one thread uses."""
    users: dict[int, set[int]] = {}
    for thread in program.threads:
        for operation in thread.operations:
            if operation.do in _OF_LOCKS:
                users.setdefault(operation.lock, set()).add(thread.tid)
    return {lock for lock, tids in users.items() if len(tids) == 1}


def _copy(thread: ThreadModel, locks: list[LockModel], own: Collection[int]) -> ThreadModel:
    """Return one more thread such as another one. Locks that only that one uses are added anew."""
    new: dict[int, int] = {}
    operations = []
    for operation in thread.operations:
        if operation.do in _OF_LOCKS and operation.lock in own:
            if operation.lock not in new:
                new[operation.lock] = len(locks)
                locks.append(locks[operation.lock])
            operations.append(operation._replace(lock=new[operation.lock]))
        else:
            operations.append(operation)
    return replace(thread, operations=tuple(operations), is_copy=True)


def _drop_signals(
    locks: Sequence[LockModel], thread: ThreadModel, tids: Collection[int]
) -> tuple[Operation, ...]:
    is_one = thread.tid in tids
    return tuple(
        operation
        for operation in thread.operations
        if operation.do not in _SIGNALS
        or not (waiter := locks[operation.lock].waiter)
        or not (is_one or waiter in tids)
    )


def _met(locks: Sequence[LockModel], threads: Sequence[ThreadModel]) -> tuple[LockModel, ...]:
    """Return the locks with barriers for the threads that meet there."""
    return tuple(
        replace(lock, units=sum(_meets(thread.operations, number) for thread in threads))
        if lock.type is LockType.BARRIER
        else lock
        for number, lock in enumerate(locks)
    )


def _meets(operations: tuple[Operation, ...], lock: int) -> bool:
    return any(operation.do == Do.MEET and operation.lock == lock for operation in operations)
