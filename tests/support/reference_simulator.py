"""The simulator of `locktop whatif` in plain Python: `native/reader/simulator.c` must do the same.

The C files say how the locks and the CPUs behave, and name the sources. This module is slow,
and has other structures: an event or a waiter is an entry of a list. Void events stay there.
"""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush
from random import Random

from locktop.collector.extensions.whatif.analysis.simulated_program import (
    Do,
    LockModel,
    LockType,
    Outcome,
    Program,
    ThreadModel,
    rests,
)

_SLICE_NS = 3_000_000
_GRANULE_NS = 1_000_000
#: A CPU with less time without work pulls no thread, and a thread that ran so recently stays.
_MIGRATION_NS = 500_000
#: The longest time without work that counts, and the time between two ticks.
_MAX_IDLE_NS, _TICK_NS = 1_000_000, 4_000_000
#: The most a thread that slept is favoured.
_CREDIT_NS = 1_500_000
#: The CPU time of threads that the scheduler prefers.
_BEFORE_ALL = -(1 << 62)
#: Owners that are followed from one to the next.
_MAX_CHAIN = 64
#: Events of the warm-up, and of the time that counts.
_MAX_EVENTS = 500_000
#: Steps without time that a thread may take one after the other.
_MAX_OPERATIONS = 1000

_COMPUTE, _SLEEP, _TAKE, _SHARE, _RELEASE, _WAIT, _POST, _MEET, _ROUND = (int(do) for do in Do)


class _Cpu:
    __slots__ = ("idle_ns", "idle_since_ns", "least_ns", "ready", "running")

    def __init__(self) -> None:
        self.running: _Thread | None = None
        self.ready: list[tuple[int, int, _Thread]] = []  # a heap by used_ns
        self.least_ns = 0  # CPU time of the threads that run next
        self.idle_ns = _MAX_IDLE_NS  # the mean time without work
        self.idle_since_ns = 0


class _Thread:
    __slots__ = (
        "cpu",
        "got",
        "is_other",
        "left_ns",
        "number",
        "on_cpu",
        "operations",
        "passed_by",
        "position",
        "ran_ns",
        "rounds",
        "since_ns",
        "slice_ns",
        "stamp",
        "used_ns",
        "waits_for",
        "waits_ns",
    )

    def __init__(self, number: int, model: ThreadModel, position: int, cpu: _Cpu) -> None:
        self.number = number
        self.cpu = cpu  # where the thread runs or ran last
        self.operations = model.operations
        self.is_other = model.is_other
        self.position = position  # the next operation
        self.left_ns = 0  # of the computation that goes on
        # of the CPU, for the scheduler
        self.used_ns = _BEFORE_ALL if model.is_other else 0
        self.since_ns = 0  # on the CPU
        self.ran_ns = -_MIGRATION_NS  # when it left the CPU
        self.slice_ns = 0  # used since it got the CPU
        self.stamp = 0  # events with another stamp are void
        self.on_cpu = False
        self.got = False  # the lock that the thread waited for was handed over
        self.rounds = 0
        self.waits_ns = 0  # when the wait began
        self.waits_for: _Lock | None = None
        self.passed_by: list[_Lock] = []  # locks that the thread did not get and goes on without


class _Lock:
    __slots__ = (
        "free",
        "has_sleepers",
        "owner",
        "readers",
        "threads",
        "type",
        "units",
        "wait_ns",
        "waiting",
    )

    def __init__(self, lock: LockModel) -> None:
        self.type = lock.type
        self.free = True
        self.owner: _Thread | None = None  # of a lock that one thread has alone
        self.has_sleepers = False  # a mutex whose release wakes a thread
        self.readers = 0
        self.units = lock.units
        self.threads = lock.units  # of a barrier
        self.waiting: deque[tuple[_Thread, int]] = deque()
        self.wait_ns = 0


class ReferenceSimulator:
    """Runs one program once."""

    def __init__(self, program: Program, seed: int = 1) -> None:
        self._random = Random(seed)
        self._program = program
        self._locks = [_Lock(lock) for lock in program.locks]
        # There is never work for more CPUs than threads.
        self._cpus = [_Cpu() for _ in range(max(1, min(program.cpus, len(program.threads))))]
        self._threads = [
            _Thread(number, thread, self._start(thread), self._cpus[number % len(self._cpus)])
            for number, thread in enumerate(program.threads)
        ]
        self._bits = self._random.getrandbits(64)
        self._now = 0
        self._tick_ns = _TICK_NS
        self._events: list[tuple[int, int, int, _Thread]] = []  # time, number, stamp
        self._number = 0
        self._cpu_ns = 0

    def _start(self, thread: ThreadModel) -> int:
        """Return the operation with which a thread begins.

        The recorded threads begin together, for each may wait for what another one does then.
        """
        is_recorded = not thread.is_other and not thread.is_copy
        return 0 if is_recorded else self._random.choice(rests(thread.operations))

    def run(self, warm_up_ns: int, span_ns: int) -> Outcome:
        """Simulate ``warm_up_ns``, then count for ``span_ns``."""
        for thread in self._threads:
            self._becomes_ready(thread)
        self._run_until(warm_up_ns)
        begin_ns = self._now
        rounds = [thread.rounds for thread in self._threads]
        waits = [lock.wait_ns for lock in self._locks]
        cpu_ns = self._cpu_ns
        self._run_until(begin_ns + span_ns)
        return Outcome(
            rounds=[t.rounds - before for t, before in zip(self._threads, rounds, strict=True)],
            wait_ns=[k.wait_ns - before for k, before in zip(self._locks, waits, strict=True)],
            stopped=sum(0 < thread.waits_ns <= begin_ns for thread in self._threads),
            cpu_ns=self._cpu_ns - cpu_ns,
            span_ns=max(1, self._now - begin_ns),
        )

    def _run_until(self, end_ns: int) -> None:
        events = self._events
        last = self._number + _MAX_EVENTS
        while self._number <= last:
            next_ns = min(events[0][0], end_ns) if events else end_ns
            if next_ns >= self._tick_ns:
                self._tick(next_ns)
                continue
            if not events or events[0][0] > end_ns:
                self._now = end_ns
                return
            self._now, _, stamp, thread = heappop(events)
            if stamp != thread.stamp:
                continue
            if thread.on_cpu:
                self._slice_ends(thread)
            else:
                self._becomes_ready(thread)

    def _later(self, thread: _Thread, after_ns: int) -> None:
        thread.stamp += 1
        self._number += 1
        heappush(self._events, (self._now + after_ns, self._number, thread.stamp, thread))

    # ---- the CPUs ----

    def _becomes_ready(self, thread: _Thread) -> None:
        thread.cpu = cpu = self._cpu_for(thread)
        if not thread.is_other:
            thread.used_ns = max(thread.used_ns, cpu.least_ns - _CREDIT_NS)
        running = cpu.running
        if running is None:
            idle_ns = self._now - cpu.idle_since_ns
            cpu.idle_ns = min(cpu.idle_ns + (idle_ns - cpu.idle_ns) // 8, _MAX_IDLE_NS)
            self._gets_cpu(thread)
        elif self._used(running) > thread.used_ns + _GRANULE_NS and running.left_ns:
            self._stops(running)
            self._queue(running)
            self._gets_cpu(thread)
        else:
            self._queue(thread)

    def _cpu_for(self, thread: _Thread) -> _Cpu:
        """Return the CPU on which a thread wakes: rather one without work."""
        # Linux keeps a thread with more than its share on its CPU while it sleeps (DELAY_DEQUEUE).
        if thread.cpu.running is None or thread.used_ns > thread.cpu.least_ns:
            return thread.cpu
        for cpu in self._cpus:
            if cpu.running is None:
                return cpu
        if thread.is_other:
            for cpu in self._cpus:
                if cpu.running is not None and not cpu.running.is_other:
                    return cpu
        return thread.cpu

    def _used(self, thread: _Thread) -> int:
        return thread.used_ns if thread.is_other else thread.used_ns + self._now - thread.since_ns

    def _queue(self, thread: _Thread) -> None:
        self._number += 1
        cpu = thread.cpu
        heappush(cpu.ready, (thread.used_ns, self._number, thread))
        running = cpu.running
        # While nobody was ready, the thread ran without an end of its slice.
        if running is not None and running.left_ns > _SLICE_NS - running.slice_ns:
            self._stops(running)
            self._starts(running)

    def _starts(self, thread: _Thread) -> None:
        thread.since_ns = self._now
        thread.cpu.running = thread
        thread.on_cpu = True
        part = thread.left_ns
        if thread.cpu.ready:
            part = min(part, max(0, _SLICE_NS - thread.slice_ns))
        self._later(thread, part)

    def _stops(self, thread: _Thread) -> None:
        """Take the CPU time into account, and leave the CPU."""
        ran_ns = self._now - thread.since_ns
        if not thread.is_other:
            thread.used_ns += ran_ns
        thread.slice_ns += ran_ns
        thread.left_ns = max(0, thread.left_ns - ran_ns)
        thread.ran_ns = self._now
        self._cpu_ns += ran_ns
        thread.on_cpu = False
        thread.stamp += 1
        thread.cpu.running = None

    def _slice_ends(self, thread: _Thread) -> None:
        self._stops(thread)
        if thread.cpu.ready and thread.slice_ns >= _SLICE_NS:
            self._queue(thread)
            self._next(thread.cpu)
        elif not self._runs(thread):
            self._next(thread.cpu)

    def _next(self, cpu: _Cpu) -> None:
        """Let the ready threads run, until one of them keeps the CPU."""
        while (thread := self._picked(cpu)) is not None:
            thread.slice_ns = 0
            cpu.running = thread
            if self._runs(thread):
                return
        cpu.idle_since_ns = self._now

    def _picked(self, cpu: _Cpu) -> _Thread | None:
        """Take the next thread from those that are ready: the one that used the least."""
        if cpu.ready:
            used_ns, _, thread = heappop(cpu.ready)
            cpu.least_ns = max(cpu.least_ns, used_ns)
            return thread
        return self._pulled(cpu, _MIGRATION_NS) if cpu.idle_ns >= _MIGRATION_NS else None

    def _gets_cpu(self, thread: _Thread) -> None:
        thread.slice_ns = 0
        thread.cpu.running = thread
        if not self._runs(thread):
            self._next(thread.cpu)

    def _pulled(self, cpu: _Cpu, rest_ns: int) -> _Thread | None:
        """Take a thread that is ready for another CPU, and did not run for ``rest_ns``."""
        busiest = max(self._cpus, key=_ready_threads)
        latest_ns = self._now - rest_ns
        movable = [entry for entry in busiest.ready if entry[2].ran_ns <= latest_ns]
        if not movable:
            return None
        entry = min(movable)
        busiest.ready.remove(entry)
        heapify(busiest.ready)
        thread = entry[2]
        thread.cpu = cpu
        if not thread.is_other:
            thread.used_ns += cpu.least_ns - busiest.least_ns
        return thread

    def _tick(self, next_ns: int) -> None:
        """Let the CPUs without work pull threads, at the last tick before ``next_ns``."""
        if any(cpu.ready for cpu in self._cpus):
            self._now = self._tick_ns
            for cpu in self._cpus:
                if cpu.running is None and (thread := self._pulled(cpu, 0)) is not None:
                    self._gets_cpu(thread)
            self._tick_ns += _TICK_NS
        else:
            self._tick_ns += (next_ns - self._tick_ns) // _TICK_NS * _TICK_NS + _TICK_NS

    def _runs(self, thread: _Thread) -> bool:
        """Take the operations of a thread that has a CPU, until it computes or waits.

        Return whether it keeps the CPU.
        """
        if thread.left_ns:
            self._starts(thread)
            return True
        operations = thread.operations
        for _ in range(_MAX_OPERATIONS):
            do, lock, amount = operations[thread.position]
            if do == _COMPUTE:
                thread.position = (thread.position + 1) % len(operations)
                thread.left_ns = amount
                self._starts(thread)
                return True
            if do == _SLEEP:
                thread.position = (thread.position + 1) % len(operations)
                self._later(thread, amount)
                break
            if do == _ROUND:
                thread.rounds += 1
            elif not self._passes(thread, do, self._locks[lock], amount):
                break
            thread.position = (thread.position + 1) % len(operations)
        else:
            self._later(thread, _SLICE_NS)  # operations without any time: never a busy loop
        thread.cpu.running = None
        return False

    # ---- the locks ----

    def _passes(self, thread: _Thread, do: int, lock: _Lock, amount: int) -> bool:
        """Return whether the thread goes on; else it waits for the lock."""
        if do == _RELEASE:
            if lock in thread.passed_by:
                thread.passed_by.remove(lock)
            else:
                self._release(lock)
        elif do == _POST:
            self._post(lock, amount)
        elif thread.got or self._gets(do, lock):
            thread.got = False
            if do == _TAKE:
                lock.owner = thread
                lock.has_sleepers = bool(thread.waits_ns)
            if thread.waits_ns:
                lock.wait_ns += self._now - thread.waits_ns
                thread.waits_ns = 0
        elif do == _TAKE and _closes_cycle(thread, lock):
            thread.passed_by.append(lock)
        else:
            thread.waits_ns = thread.waits_ns or max(self._now, 1)
            thread.waits_for = lock
            lock.has_sleepers = True
            lock.waiting.append((thread, do))
            return False
        return True

    def _gets(self, do: int, lock: _Lock) -> bool:
        if do == _MEET:
            return self._meets(lock)
        if do == _WAIT:
            if not lock.units:
                return False
            lock.units -= 1
            return True
        if do == _SHARE and (lock.free or lock.readers):
            lock.free = False
            lock.readers += 1
            return True
        if do == _TAKE and lock.free:
            lock.free = False
            return True
        return False

    def _meets(self, lock: _Lock) -> bool:
        if len(lock.waiting) + 1 < lock.threads:
            return False
        while lock.waiting:
            self._hand_over(lock)
        return True

    def _wake(self, lock: _Lock) -> None:
        """Wake the first waiter, which tries again."""
        if lock.waiting:
            thread, _ = lock.waiting.popleft()
            thread.waits_for = None
            self._later(thread, self._random_wake_ns())

    def _random_wake_ns(self) -> int:
        """Return the next choice of splitmix64 (prng.di.unimi.it/splitmix64.c)."""
        bits = self._bits = (self._bits + 0x9E3779B97F4A7C15) % 2**64
        bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        bits = (bits ^ bits >> 27) * 0x94D049BB133111EB % 2**64
        cases = self._program.wakes_ns
        return cases[(bits ^ bits >> 31) % len(cases)]

    def _hand_over(self, lock: _Lock) -> None:
        """Give the lock to the first waiter."""
        lock.waiting[0][0].got = True
        self._wake(lock)

    def _post(self, lock: _Lock, units: int) -> None:
        lock.units += units
        for _ in range(min(units, len(lock.waiting))):
            self._wake(lock)

    def _release(self, lock: _Lock) -> None:
        lock.owner = None
        if lock.readers:
            lock.readers -= 1
            lock.free = not lock.readers
        else:
            lock.free = True
        if lock.type is LockType.MUTEX:
            if lock.has_sleepers:
                self._wake(lock)
        elif lock.free:
            self._pass_on(lock)

    def _pass_on(self, lock: _Lock) -> None:
        """Hand a free rwlock over: to all readers that wait, else to the first writer."""
        readers = [waiter for waiter in lock.waiting if waiter[1] == _SHARE]
        if readers:
            writers = [waiter for waiter in lock.waiting if waiter[1] != _SHARE]
            lock.waiting = deque(readers)
            lock.readers = len(readers)
            lock.free = False
            while lock.waiting:
                self._hand_over(lock)
            lock.waiting.extend(writers)
        elif lock.waiting:
            lock.free = False
            self._hand_over(lock)


def _ready_threads(cpu: _Cpu) -> int:
    return len(cpu.ready)


def _closes_cycle(thread: _Thread, lock: _Lock) -> bool:
    """Return whether a thread would wait for itself.

    The recorded program did not stop. So such a call only tried to get the lock (trylock), and the
    thread goes on without the lock.
    """
    owner = lock.owner
    for _ in range(_MAX_CHAIN):
        if owner is None or owner is thread:
            return owner is thread
        owner = owner.waits_for.owner if owner.waits_for is not None else None
    return False
