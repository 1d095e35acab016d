"""The thread that keeps Python's global interpreter lock (GIL) while other threads wait for it.

A waiter wakes every 5 ms and asks the holder for the GIL. A thread that runs Python code gives it
away then. A thread in a function of C may keep it for long. The interpreter counts how often the
GIL went from one thread to another. If the number is the same in two readings, nobody else had it
between them. So a waiter that waits at both readings waited throughout, for this one holder.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from locktop.collector.analysis import interpreter_deadlocks
from locktop.collector.linux import futex, process_memory
from locktop.collector.linux.threads import KernelThreads, ThreadMoment
from locktop.collector.model import Deadlock, DeadlockEdge, Draft, Held, Kind, Thread, Wait
from locktop.collector.model.kinds import INTERPRETER_LOCK_KINDS
from locktop.collector.sources.probes.hang_probe import gil_waiters
from locktop.collector.sources.probes.python_lock_reader import PythonLockReader
from locktop.collector.symbols.python import gil
from locktop.collector.symbols.python.gil import GilReading

#: The symbol of the condition says little, and a stripped interpreter has none.
NAME = "GIL of Python"
_MAX_CONDITIONS = 64  # without a stack that tells of the GIL, read in one scan
#: A GIL that a thread has kept for a shorter time is no finding.
_MIN_KEPT_S = 0.1
_COND_SIZE = 48  # bytes of a pthread_cond_t
#: For a waiter that is awake between two of its waits: seconds for it to sleep again, and a pause.
_MAX_AWAKE_S, _PAUSE_S = 0.3, 0.001
_OWNER_AT = 8  # of a pthread_mutex_t
_OWNER = struct.Struct("=I")


class _KeptGil(Struct):
    """A GIL that one thread has kept since a reading."""

    reading: GilReading
    since_s: float  # time.monotonic()
    waiters: dict[int, float]  # by tid: the reading at which the thread waited first


class GilHolders:
    """Finds these threads in one process, scan after scan."""

    def __init__(self, pid: int, tasks: KernelThreads, reader: PythonLockReader) -> None:
        self._pid = pid
        self._tasks = tasks
        self._reader = reader
        self._kept: dict[int, _KeptGil] = {}  # by address of the lock
        self._conditions: set[int] = set()  # addresses of locks that are GILs

    def find_deadlocks(self, draft: Draft, may_wait: bool) -> bool:
        """Fill in who keeps the GIL, and the deadlocks over it.

        Args:
            draft: the scan, with the names of functions.
            may_wait: whether to wait for a second reading in this scan.

        Returns:
            Whether a wait has a holder now.
        """
        waiters = gil_waiters(draft) | self._other_waiters(draft)
        has_holder = self.annotate(draft, waiters, may_wait)
        cycles = interpreter_deadlocks.find(draft, waiters)
        confirmed = [self.confirm(draft, cycle) for cycle in cycles]
        draft.deadlocks = (*draft.deadlocks, *filter(None, confirmed))
        return has_holder

    def name_locks(self, draft: Draft) -> None:
        """Give each GIL its name: that of its symbol says little."""
        if self._conditions:
            draft.locks = tuple([
                replace(lock, name=NAME) if lock.address in self._conditions else lock
                for lock in draft.locks
            ])  # fmt: skip

    def _other_waiters(self, draft: Draft) -> dict[int, int]:
        """Return by tid the address at which a thread waits for the GIL, if its stack is not known.

        Such a thread is awake every 5 ms, so its stack often cannot be read. Then the memory tells.
        """
        addresses = {lock.id: lock.address for lock in draft.locks}
        others = {
            thread.tid: addresses[wait.lock]
            for thread in draft.threads
            if (wait := thread.waiting_for) is not None
            and wait.kind in INTERPRETER_LOCK_KINDS
            and wait.lock in addresses
            and not wait.stack
        }
        for address in list(dict.fromkeys(others.values()))[:_MAX_CONDITIONS]:
            if address not in self._conditions:
                self._reading(address)
        return {tid: address for tid, address in others.items() if address in self._conditions}

    def _reading(self, address: int) -> GilReading | None:
        """Return the GIL at an address; None if no thread has it, or it is no GIL."""
        if self._reader.locks() is None or self._reader.state is None:
            return None
        reading = gil.read(self._pid, self._reader.state, address)
        if reading is not None:
            self._conditions.add(address)
        return reading

    def annotate(self, draft: Draft, waiters: Mapping[int, int], may_wait: bool) -> bool:
        """Fill in who keeps the GIL, and how long the others have waited for it.

        Args:
            draft: the scan.
            waiters: by tid, the address of the condition at which a thread waits for the GIL.
            may_wait: whether to wait for a second reading in this scan.

        Returns:
            Whether a thread keeps the GIL from others.
        """
        if not waiters:
            return False
        self._read(waiters)
        if may_wait and any(self._age_s(kept) < _MIN_KEPT_S for kept in self._kept.values()):
            time.sleep(_MIN_KEPT_S)
            self._read(waiters)
        kept = {
            tid: kept
            for kept in self._kept.values()
            for tid in kept.waiters.keys() & waiters.keys()
            if self._age_s(kept) >= _MIN_KEPT_S and tid != kept.reading.holder
        }
        if kept:
            _fill_in(draft, kept, time.monotonic())
        return bool(kept)

    def _age_s(self, kept: _KeptGil) -> float:
        return time.monotonic() - kept.since_s

    def _read(self, waiters: Mapping[int, int]) -> None:
        """Read each GIL; forget those that another thread has had since the reading before."""
        now = time.monotonic()
        for address in set(waiters.values()):
            reading = self._reading(address)
            if reading is None:
                self._kept.pop(address, None)
            elif address not in self._kept or self._kept[address].reading != reading:
                self._kept[address] = _KeptGil(reading, now, {})
        # A waiter may be awake at a reading. Without the GIL the waiter does not go on: it has
        # waited throughout.
        for tid, address in waiters.items():
            if address in self._kept:
                self._kept[address].waiters.setdefault(tid, now)

    # ---- deadlocks ----

    def confirm(self, draft: Draft, deadlock: Deadlock) -> Deadlock | None:
        """Return a deadlock over the GIL with whether it is certain; None if it is none.

        All threads but the waiters for the GIL sleep throughout the query. One of these has the GIL
        meanwhile. So the waiters for the GIL that are seen during the query stay in that wait. They
        do not release what they own after that.

        Args:
            draft: the scan.
            deadlock: a cycle of its waits.
        """
        waits = {thread.tid: thread.waiting_for for thread in draft.threads}
        locks = {lock.id: lock for lock in draft.locks}
        kept = {tid: kept for kept in self._kept.values() for tid in kept.waiters}
        sleepers = [edge for edge in deadlock.cycle if edge.tid not in kept]
        before = self._tasks.moments([edge.tid for edge in sleepers])
        if len(before) < len(sleepers) or any(each.state != "S" for each in before.values()):
            return None
        for edge in deadlock.cycle:
            if edge.tid in kept and not self._waits_for_gil(edge, kept[edge.tid].reading):
                return None
        owners = [
            self._owner(waits[edge.tid], locks[edge.waits_for].address, before[edge.tid])
            for edge in sleepers
        ]
        again = self._tasks.moments(before)
        if any(tid not in again or again[tid] != moment for tid, moment in before.items()):
            return None
        if any(
            owner not in (edge.held_by, None) for owner, edge in zip(owners, sleepers, strict=True)
        ):
            return None
        return replace(deadlock, certain=True, doubt="") if None not in owners else deadlock

    def _waits_for_gil(self, edge: DeadlockEdge, expected: GilReading) -> bool:
        """Return whether a thread waits for a GIL that the expected thread has."""
        state, until = self._reader.state, time.monotonic() + _MAX_AWAKE_S
        while state is not None and time.monotonic() < until:
            moment = self._tasks.moments([edge.tid]).get(edge.tid)
            call = moment.call if moment is not None and moment.state == "S" else None
            wait = futex.parse_wait(self._pid, call) if call is not None else None
            if wait is not None and 0 <= wait.address - expected.condition < _COND_SIZE:
                return gil.read(self._pid, state, expected.condition) == expected
            time.sleep(_PAUSE_S)
        return False

    def _owner(self, wait: Wait | None, address: int, moment: ThreadMoment) -> int | None:
        """Return the tid in the memory of the lock that a thread waits for; None if not known."""
        if wait is not None and wait.kind is Kind.MUTEX:
            data = process_memory.read(self._pid, address + _OWNER_AT, _OWNER.size)
            return int(_OWNER.unpack(data)[0]) if len(data) == _OWNER.size else 0
        locks, waited_for = self._reader.locks(), self._reader.waited_for_in(moment)
        if locks is None or waited_for is None or not waited_for[1].owned:
            return None
        return locks.owner(waited_for[1])


def _fill_in(draft: Draft, kept: Mapping[int, _KeptGil], now: float) -> None:
    """Give waits and locks their holders, and the holders what they hold."""
    holders: dict[int, int] = {}  # by lock
    threads: list[Thread] = []
    for thread in draft.threads:
        wait = thread.waiting_for
        if thread.tid in kept and wait is not None:
            holder = kept[thread.tid].reading.holder
            holders[wait.lock] = holder
            # The interpreter's wait has no time limit, although each of its calls has.
            lasted_s = max(wait.duration_s, now - kept[thread.tid].waiters[thread.tid])
            wait = replace(
                wait, holders=(holder,), duration_s=lasted_s, timed=False, is_lower_bound=True,
            )  # fmt: skip
            thread = replace(thread, waiting_for=wait)
        threads.append(thread)
    draft.threads = tuple([
        replace(thread, holds=(*thread.holds, *_holds(holders, thread.tid)))
        if thread.tid in holders.values() else thread
        for thread in threads
    ])  # fmt: skip
    draft.locks = tuple([
        replace(lock, holders=(holders[lock.id],)) if lock.id in holders else lock
        for lock in draft.locks
    ])  # fmt: skip


def _holds(holders: Mapping[int, int], tid: int) -> Sequence[Held]:
    return [
        Held(lock=lock, site=0, duration_s=None)
        for lock, holder in holders.items()
        if holder == tid
    ]
