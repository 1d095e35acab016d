"""The threads that probably hold locks of Python, because they are in a ``with`` block of the lock.

A ``threading.Lock`` does not name its holder. A thread in the block of ``with lock`` keeps the
``__exit__`` of the lock on its stack (lock_objects.py). Nobody can tell whether another thread
released the lock meanwhile, or the thread itself by ``release()``. So the thread holds it probably.
If several threads are in such blocks, all but one released the lock, and none is named. Of a lock
that was taken by ``acquire()`` nothing is said.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from locktop.collector.linux import futex
from locktop.collector.linux.threads import KernelThreads, ThreadMoment
from locktop.collector.model import Draft, HolderEvidence, Kind, ProbableHolder, Thread, Wait
from locktop.collector.model.frames import PYTHON
from locktop.collector.model.kinds import INTERPRETER_LOCK_KINDS, NAMED_BY_STACK_KINDS
from locktop.collector.sources.probes.python_lock_reader import PythonLockReader
from locktop.collector.symbols.python.interpreter import is_interpreter
from locktop.collector.symbols.python.interpreter_state import InterpreterState
from locktop.collector.symbols.python.lock_objects import LockObject, LockObjects

#: A shorter wait is likely to end before its holder is known.
_MIN_WAIT_S = 0.1
_MAX_WAITERS = 64  # of one scan, those with the longest waits
#: Bytes, at most, of an object of glibc with a word at which threads wait. A semaphore begins with
#: that word, and the next one may lie 48 bytes behind it.
_OBJECT_SIZE, _SEMAPHORE_SIZE = 64, 32
#: Seconds for threads that no earlier scan read: of a scan for the screen, and of a full one.
SCAN_S, FULL_SCAN_S = 0.01, 1.0
_AT_ONCE = 32  # threads whose frames are read together

#: One sleep of a thread: its tid, and the counts of ThreadMoment.
_Sleep = tuple[int, tuple[int, int, int]]


class _LockTarget(Struct):
    """A lock object that threads wait for."""

    ids: set[int] = field(default_factory=set)  # of the waits: a PyMutex has one for each wait
    waiters: dict[int, ThreadMoment] = field(default_factory=dict)  # by tid


class _HeldByThread(NamedTuple):
    """The locks whose blocks a thread is in."""

    counts: tuple[int, int, int]  # of ThreadMoment, at the reading
    locks: frozenset[int]


class PythonHolders:
    """Finds these threads in one process, scan after scan. Each sleep is read once."""

    def __init__(self, pid: int, tasks: KernelThreads, reader: PythonLockReader) -> None:
        self._pid = pid
        self._tasks = tasks
        self._reader = reader
        self._waited: dict[_Sleep, tuple[int, LockObject] | None] = {}
        self._held: dict[int, _HeldByThread] = {}  # by tid, the oldest reading first

    def annotate(self, draft: Draft, is_full: bool) -> None:
        """Fill in the probable holders of Python's locks with long waits and no known holder.

        Args:
            draft: the scan, with stacks and with idle waits known.
            is_full: whether the scan waits for all names, and has more time for threads.
        """
        waiters = _waiters(draft)
        if not waiters:
            self._waited.clear()
            self._held.clear()
            return
        until = time.monotonic() + (FULL_SCAN_S if is_full else SCAN_S)
        try:
            locks = self._reader.locks()
            state = self._reader.state
            if locks is None or state is None:
                return
            locks.begin()
            targets = self._targets(waiters, {lock.id: lock.address for lock in draft.locks})
            holders = self._holders(draft, targets, locks, state, until) if targets else {}
        except OSError:
            return  # the process has ended, or may not be read
        if holders:
            draft.locks = tuple([
                replace(lock, holders_probable=holders[lock.id])
                if lock.id in holders and not lock.holders_probable else lock
                for lock in draft.locks
            ])  # fmt: skip

    def _targets(
        self, waiters: Mapping[int, Thread], words: Mapping[int, int]
    ) -> dict[int, _LockTarget]:
        """Return the locks that these threads still wait for, by the address of the object.

        Args:
            waiters: by tid.
            words: the addresses at which threads wait, by the id of the lock.
        """
        targets: dict[int, _LockTarget] = {}
        waited: dict[_Sleep, tuple[int, LockObject] | None] = {}
        for tid, moment in self._tasks.moments(waiters).items():
            sleep = tid, moment.counts
            if sleep in self._waited:
                waited[sleep] = self._waited[sleep]
            else:
                waited[sleep] = self._reader.waited_for_in(moment)
            answer, wait = waited[sleep], waiters[tid].waiting_for
            if answer is None or wait is None or words.get(wait.lock) != answer[0]:
                continue  # it may wait for another lock since the scan
            if answer[1].owned:
                continue  # recursive_locks.py knows the owner exactly
            target = targets.setdefault(answer[1].address, _LockTarget())
            target.ids.add(wait.lock)
            target.waiters[tid] = moment
        self._waited = waited
        return targets

    def _leave_out_ended(self, targets: dict[int, _LockTarget]) -> None:
        """Leave out the locks of which a waiter has gone on meanwhile.

        So the waits of the rest went on while the blocks were read.
        """
        before = {tid: each for target in targets.values() for tid, each in target.waiters.items()}
        now = self._tasks.moments(before)
        for address, target in list(targets.items()):
            if not all(
                tid in now and _has_slept(target.waiters[tid], now[tid]) for tid in target.waiters
            ):
                del targets[address]

    def _movers(self, draft: Draft, tids: Set[int]) -> Set[int]:
        """Return which of these threads have left the waits that the scan shows.

        They hold their locks now, but did not while they waited as the scan says.
        """
        addresses = {lock.id: lock.address for lock in draft.locks}
        waits = {
            thread.tid: wait
            for thread in draft.threads
            if thread.tid in tids and (wait := thread.waiting_for) is not None
        }
        moments = self._tasks.moments(waits)
        return {
            tid
            for tid, wait in waits.items()
            if not self._still_waits(tid, wait, addresses.get(wait.lock, 0), moments.get(tid))
        }

    def _still_waits(self, tid: int, wait: Wait, address: int, moment: ThreadMoment | None) -> bool:
        if moment is None or moment.state != "S" or moment.call is None:
            return False
        call = futex.parse_wait(self._pid, moment.call)
        size = _SEMAPHORE_SIZE if wait.kind is Kind.SEM else _OBJECT_SIZE
        if call is None or not 0 <= call.address - address < size:
            return False
        # A wait for the GIL begins anew all the time.
        return moment.counts == self._held[tid].counts or wait.kind in INTERPRETER_LOCK_KINDS

    def _holders(
        self,
        draft: Draft,
        targets: dict[int, _LockTarget],
        locks: LockObjects,
        state: InterpreterState,
        until: float,
    ) -> dict[int, tuple[ProbableHolder, ...]]:
        """Return the probable holders by the id of the lock."""
        states = state.threads({thread.tid for thread in draft.threads if _is_own(thread)})
        held: dict[int, Set[int]] = {}  # by tid: locks
        order = self._order(draft, states, targets)
        for begin in range(0, len(order), _AT_ONCE):
            if begin and time.monotonic() > until:
                break
            some = {tid: states[tid] for tid in order[begin : begin + _AT_ONCE]}
            held |= self._held_by(some, locks, state)
        self._held = {tid: answer for tid, answer in self._held.items() if tid in states}
        self._leave_out_ended(targets)
        wanted = targets.keys()
        moved = self._movers(draft, {tid for tid in held if not wanted.isdisjoint(held[tid])})
        waits = {
            thread.tid: thread.waiting_for.lock
            for thread in draft.threads
            if thread.waiting_for is not None
        }
        holders: dict[int, tuple[ProbableHolder, ...]] = {}
        for address, target in targets.items():
            holding = [
                tid for tid, in_blocks in held.items()
                if address in in_blocks and waits.get(tid) not in target.ids and tid not in moved
            ]  # fmt: skip
            if len(holding) == 1:
                evidence = HolderEvidence.PYTHON
                probable = ProbableHolder(tid=holding[0], evidence=evidence, site=0)
                holders.update(dict.fromkeys(target.ids, (probable,)))
        return holders

    def _order(
        self, draft: Draft, states: Mapping[int, int], targets: Mapping[int, _LockTarget]
    ) -> list[int]:
        """Return the threads in the order in which to read them: known holders come first.

        Then come threads that were never read, then those whose reading is the oldest. Of a
        thousand threads most wait for the lock, so those that do not wait are read before.
        """
        wanted = targets.keys()
        waits = {thread.tid: thread.waiting_for for thread in draft.threads if thread.waiting_for}
        if len(targets) == 1:  # a waiter may hold another lock, and none is wanted
            (target,) = targets.values()
            states = {
                tid: state
                for tid, state in states.items()
                if tid not in waits or waits[tid].lock not in target.ids
            }
        former = [tid for tid in self._held if tid in states]
        holders = [tid for tid in former if not wanted.isdisjoint(self._held[tid].locks)]
        new = [tid for tid in states if tid not in self._held]
        new.sort(key=lambda tid: 0 if tid not in waits else 1 if waits[tid].idle else 2)
        return list(dict.fromkeys([*holders, *new, *former]))

    def _held_by(
        self, states: Mapping[int, int], locks: LockObjects, state: InterpreterState
    ) -> dict[int, Set[int]]:
        """Return by tid the locks whose blocks these threads are in."""
        moments = self._tasks.moments(states)
        new = []
        for tid, moment in moments.items():
            answer = self._held.pop(tid, None)  # the newest answers are the last ones
            if answer is not None and answer.counts == moment.counts and moment.state == "S":
                self._held[tid] = answer
            else:
                new.append(tid)
        read = self._read(new, states, locks, state)
        again = self._tasks.moments(new)
        running = []
        for tid in new:
            self._held[tid] = _HeldByThread(moments[tid].counts, read[tid])
            if tid not in again or not _has_slept(moments[tid], again[tid]):
                running.append(tid)
        # Their frames changed meanwhile. Such a thread has not left a block that it is in twice.
        second = self._read(running, states, locks, state)
        return {
            tid: self._held[tid].locks & second.get(tid, self._held[tid].locks) for tid in moments
        }

    def _read(
        self,
        tids: Sequence[int],
        states: Mapping[int, int],
        locks: LockObjects,
        state: InterpreterState,
    ) -> dict[int, frozenset[int]]:
        frames = state.frames_of([states[tid] for tid in tids]) if tids else []
        return {tid: locks.held_by_blocks(each) for tid, each in zip(tids, frames, strict=True)}


def _has_slept(before: ThreadMoment, now: ThreadMoment) -> bool:
    return before.state == now.state == "S" and before.counts == now.counts


def _waiters(draft: Draft) -> dict[int, Thread]:
    """Return by tid the threads that wait long in Python code, and for no known holder."""
    waiting: list[tuple[float, Thread]] = []
    for thread in draft.threads:
        wait = thread.waiting_for
        if wait is None or wait.idle or wait.holders or wait.kind not in NAMED_BY_STACK_KINDS:
            continue
        if wait.duration_s < _MIN_WAIT_S and not wait.is_lower_bound:
            continue
        if _is_own(thread) and _is_in_python(draft, thread.stack):
            waiting.append((wait.duration_s, thread))
    waiting.sort(key=lambda item: -item[0])
    return {thread.tid: thread for _, thread in waiting[:_MAX_WAITERS]}


def _is_in_python(draft: Draft, stack: int) -> bool:
    frames = draft.stacks.get(stack, ())
    return any(frame.module == PYTHON or is_interpreter(frame) for frame in frames)


def _is_own(thread: Thread) -> bool:
    return thread.alive and not thread.pid
