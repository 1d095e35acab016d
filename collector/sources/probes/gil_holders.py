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
from locktop.collector.model import (
    Deadlock,
    DeadlockEdge,
    Draft,
    Held,
    Kind,
    Lock,
    Thread,
    ThreadState,
    Wait,
)
from locktop.collector.model.kinds import INTERPRETER_LOCK_KINDS
from locktop.collector.model.locks import GIL
from locktop.collector.sources.probes.gil_reader import GilReader
from locktop.collector.sources.probes.python_lock_reader import PythonLockReader
from locktop.collector.sources.probes.python_stacks import WaitKeys
from locktop.collector.symbols.python import gil
from locktop.collector.symbols.python.gil import GilReading
from locktop.collector.symbols.python.interpreter import waits_for_interpreter

#: A GIL that a thread has kept for a shorter time is no finding.
_MIN_KEPT_S = 0.1
#: For a waiter that is awake between two of its waits: seconds for it to sleep again, and a pause.
_MAX_AWAKE_S, _PAUSE_S = 1.0, 0.001
_OWNER_AT = 8  # of a pthread_mutex_t
_OWNER = struct.Struct("=I")
#: Of the key of a wait for a GIL, in place of the life of its thread.
_OF_GIL = -1


class _KeptGil(Struct):
    """A GIL that one thread has kept since a reading."""

    reading: GilReading
    since_s: float  # time.monotonic()
    waiters: dict[int, float]  # by tid: since when at least the thread waits, time.monotonic()

    @property
    def age_s(self) -> float:
        return time.monotonic() - self.since_s


class GilHolders:
    """Finds these threads in one process, scan after scan."""

    def __init__(
        self, pid: int, tasks: KernelThreads, reader: PythonLockReader, gil: GilReader
    ) -> None:
        self._pid = pid
        self._tasks = tasks
        self._reader = reader
        self._gil = gil
        self._kept: dict[int, _KeptGil] = {}  # by address of the lock
        self._waits: dict[int, Wait] = {}  # by tid: the last wait for a kept GIL that a scan showed
        self._longest_s: dict[int, float] = {}  # by address of the lock: its longest wait

    def find_deadlocks(self, draft: Draft, read_at_s: float, may_wait: bool) -> bool:
        """Fill in who keeps the GIL, and the deadlocks over it.

        Args:
            draft: the scan, with the names of functions.
            read_at_s: when its threads were read, time.monotonic().
            may_wait: whether to wait for a second reading in this scan.

        Returns:
            Whether a wait has a holder now.
        """
        waiters = self.waiters(draft)
        has_holder = self.annotate(draft, waiters, read_at_s, may_wait)
        cycles = interpreter_deadlocks.find(draft, waiters)
        confirmed = [self.confirm(draft, cycle) for cycle in cycles]
        draft.deadlocks = (*draft.deadlocks, *filter(None, confirmed))
        return has_holder

    def describe_locks(self, draft: Draft) -> None:
        """Give each GIL its name, for that of its symbol says little, and its longest wait."""
        if self._gil.conditions:
            draft.locks = tuple([
                self._describe(lock) if lock.address in self._gil.conditions else lock
                for lock in draft.locks
            ])  # fmt: skip

    def _describe(self, lock: Lock) -> Lock:
        longest_s = self._longest_s.get(lock.address, 0.0)
        if longest_s > lock.wait_max_s:
            lock = replace(lock, wait_max_s=longest_s, wait_max_is_lower_bound=True)
        # The symbol of the condition says little, and a stripped interpreter has none.
        return replace(lock, name=GIL)

    def waiters(self, draft: Draft) -> dict[int, int]:
        """Return by tid the address of the condition at which a thread waits for the GIL.

        A waiter is awake every 5 ms, so its stack often cannot be read. Then the memory tells.
        """
        addresses = {lock.id: lock.address for lock in draft.locks}
        waiters: dict[int, int] = {}
        for thread in draft.threads:
            wait = thread.waiting_for
            if (
                wait is None
                or wait.kind not in INTERPRETER_LOCK_KINDS
                or wait.lock not in addresses
            ):
                continue
            address = addresses[wait.lock]
            if not wait.stack and address not in self._gil.conditions:
                self._gil.read(address)
            if address in self._gil.conditions or waits_for_interpreter(
                draft.stacks.get(wait.stack, ())
            ):
                waiters[thread.tid] = address
        return waiters

    def wait_keys(self) -> WaitKeys:
        """Return keys for the waits of threads that wait for a kept GIL at this moment.

        The key stays the same for the whole wait, although each of its calls is one to the library.
        """
        return {
            tid: (_OF_GIL, kept.reading.switches)
            for address, kept in self._kept.items()
            if kept.waiters and self._gil.read(address) == kept.reading
            for tid in kept.waiters
        }

    def annotate(
        self, draft: Draft, waiters: Mapping[int, int], read_at_s: float, may_wait: bool
    ) -> bool:
        """Fill in who keeps the GIL, and how long the others have waited for it.

        Args:
            draft: the scan.
            waiters: by tid, the address of the condition at which a thread waits for the GIL.
            read_at_s: when the threads of the scan were read, time.monotonic().
            may_wait: whether to wait for a second reading in this scan.

        Returns:
            Whether a thread keeps the GIL from others.
        """
        self._read(waiters, read_at_s)
        if may_wait and self._kept:
            self._see_again(waiters)
            self._read(waiters, read_at_s)
        kept = {
            tid: kept
            for kept in self._kept.values()
            for tid in kept.waiters
            if kept.age_s >= _MIN_KEPT_S and tid != kept.reading.holder
        }
        self._waits = {
            thread.tid: thread.waiting_for or self._waits[thread.tid]
            for thread in draft.threads
            if thread.tid in kept
            and thread.alive
            and (
                thread.tid in waiters or (thread.waiting_for is None and thread.tid in self._waits)
            )
        }
        if self._waits:
            self._fill_in(draft, kept, time.monotonic())
        return bool(self._waits)

    def _read(self, waiters: Mapping[int, int], read_at_s: float) -> None:
        """Read each GIL; forget those that another thread has had since the reading before.

        A thread that waited after the first of two equal readings has waited until the second one:
        a thread leaves its wait only with the GIL.
        """
        for address in {*waiters.values(), *self._kept}:
            reading = self._gil.read(address)
            if reading is None:
                self._kept.pop(address, None)
            elif address not in self._kept or self._kept[address].reading != reading:
                self._kept[address] = _KeptGil(reading, time.monotonic(), {})
        for tid, address in waiters.items():
            if address in self._kept and self._kept[address].since_s <= read_at_s:
                self._kept[address].waiters.setdefault(tid, read_at_s)

    def _see_again(self, waiters: Mapping[int, int]) -> None:
        """Note which waiters wait after the first reading of their GIL, each at a sleep."""
        until = time.monotonic() + _MAX_AWAKE_S
        left = {
            tid: self._kept[address]
            for tid, address in waiters.items()
            if address in self._kept and tid not in self._kept[address].waiters
        }
        while left and time.monotonic() < until:
            for tid, moment in self._tasks.moments(list(left)).items():
                if self._sleeps_at(moment, left[tid].reading):
                    left.pop(tid).waiters[tid] = time.monotonic()
            time.sleep(_PAUSE_S if left else 0.0)
        youngest_s = min(kept.age_s for kept in self._kept.values())
        time.sleep(max(0.0, _MIN_KEPT_S - youngest_s))

    def _sleeps_at(self, moment: ThreadMoment | None, reading: GilReading) -> bool:
        """Return whether a thread sleeps at the condition of a GIL."""
        call = moment.call if moment is not None and moment.state == "S" else None
        wait = futex.parse_wait(self._pid, call) if call is not None else None
        return wait is not None and gil.is_at(wait.address, reading.condition)

    def _fill_in(self, draft: Draft, kept: Mapping[int, _KeptGil], now: float) -> None:
        """Give waits and locks their holders, and the holders what they hold."""
        addresses = {lock.id: lock.address for lock in draft.locks}
        holders: dict[int, int] = {}  # by lock
        threads: list[Thread] = []
        awake: dict[int, list[int]] = {}  # by lock: waiters without a sleep
        for thread in draft.threads:
            if (wait := self._waits.get(thread.tid)) is not None:
                gil = kept[thread.tid]
                holders[wait.lock] = gil.reading.holder
                if thread.waiting_for is None:
                    awake.setdefault(wait.lock, []).append(thread.tid)
                lasted_s = max(
                    thread.waiting_for.duration_s if thread.waiting_for is not None else 0.0,
                    now - gil.waiters[thread.tid],
                )
                longest_s = self._longest_s.get(addresses[wait.lock], 0.0)
                self._longest_s[addresses[wait.lock]] = max(longest_s, lasted_s)
                # The interpreter's wait has no time limit, although each of its calls has. The
                # classifier has not seen a wait of this duration yet.
                wait = replace(
                    wait,
                    holders=(gil.reading.holder,),
                    duration_s=lasted_s,
                    timed=False,
                    is_lower_bound=True,
                    idle=True,
                )
                thread = replace(thread, waiting_for=wait, state=ThreadState.WAITING)
            threads.append(thread)
        draft.threads = tuple([
            replace(thread, holds=(*thread.holds, *_holds(holders, thread.tid)))
            if thread.tid in holders.values() else thread
            for thread in threads
        ])  # fmt: skip
        draft.locks = tuple([
            replace(
                lock,
                holders=(holders[lock.id],),
                waiters=(*lock.waiters, *awake.get(lock.id, ())),
            )
            if lock.id in holders else lock
            for lock in draft.locks
        ])  # fmt: skip

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
            if self._sleeps_at(self._tasks.moments([edge.tid]).get(edge.tid), expected):
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


def _holds(holders: Mapping[int, int], tid: int) -> Sequence[Held]:
    return [
        Held(lock=lock, site=0, duration_s=None)
        for lock, holder in holders.items()
        if holder == tid
    ]
