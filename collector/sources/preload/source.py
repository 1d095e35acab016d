"""The exact source: the shared memory of a process that runs with the library."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from locktop.collector.analysis import (
    contention_patterns,
    deadlocks,
    semaphore_ownership,
    wait_for_graph,
)
from locktop.collector.analysis.idle.classifier import Classifier
from locktop.collector.analysis.idle.rules import Rules
from locktop.collector.analysis.lock_order_cycles import Found
from locktop.collector.errors import LocktopError
from locktop.collector.format import patterns
from locktop.collector.linux import procfs, ptrace_access, syscalls
from locktop.collector.linux.process_info import ProcessFigures, iso
from locktop.collector.linux.target import find_process, user_name
from locktop.collector.linux.threads import Now, Task, Tasks
from locktop.collector.model import (
    Deadlock,
    Event,
    Frame,
    Kind,
    Lock,
    Misuse,
    OrderCycle,
    Snapshot,
    Thread,
)
from locktop.collector.native import lib
from locktop.collector.sanitize import clean
from locktop.collector.shm import control
from locktop.collector.shm.layout import Use
from locktop.collector.shm.reader import RawThread, Reading
from locktop.collector.shm.segment import SharedMemory
from locktop.collector.sources import discover, gc_pause
from locktop.collector.sources.base import WaitNow
from locktop.collector.sources.preload import (
    event_builder,
    exit_snapshot,
    fork_inherited,
    peer_processes,
    unobserved_waiters,
    wait_poll,
)
from locktop.collector.sources.preload.lock_state import forget_former_owners, locks_now
from locktop.collector.sources.preload.session import Session
from locktop.collector.sources.preload.unobserved_waits import UnobservedWaitProbe
from locktop.collector.sources.probes.followed_thread import FollowedThread
from locktop.collector.sources.probes.holder_activity import Holders

#: Of one look, for the flight recorder: counters never wait for it.
_EVENTS_BUDGET_S = 0.02
#: A program just executed loads the library and makes its file before anything else.
_SCANS_AFTER_EXEC = 5
_AFTER_EXEC_S = 0.02
_DORMANT = (
    "the library is dormant: nothing is counted, and who waits and who holds is not known, until"
    " another level is set"
)
_WAS_DORMANT = (
    "the library was dormant for a time: what happened then is not counted, and who took a lock"
    " before that was over may not be known"
)
#: Kinds of lock at which a waiter may use its CPU.
_MAY_SPIN = frozenset({lib.LT_KIND_SPIN, lib.LT_KIND_CUSTOM})
_SLEEPS = "SD"
_USE_CPU = frozenset({Kind.SPIN, Kind.CUSTOM})
#: By the state of its first thread.
_STOPPED = {
    "T": "the process is stopped by a signal, so nothing in it goes on: `kill -CONT {pid}` lets it",
    "t": "a debugger or tracer has stopped the process, or its first thread: that does not go on",
}
#: After a first look that is to tell all, where others tell more; of these at most so many.
_BETWEEN_S = 0.25
_MAX_MORE = 3
_NAMES_S = 30.0
#: For the stacks of holders.
_STACKS_S, _STACKS_OF_ALL_S = 0.01, 2.0
#: For those of threads that wait unseen, of which nothing else is known.
_STACKS_UNSEEN_S = 2.0
_MAX_ROUNDS = 6  # a name that leads to another one, and that to a third, ...
#: For names that the last look at an ended process asks for: nobody looks again.
_LAST_NAMES_S = 1.0
_NOTES = {
    lib.LT_NOTE_NO_ROOM: "the process's shared memory is full: details are missing"
    " (raise LOCKTOP_MEMORY where it is set, else the size of /dev/shm, or set LOCKTOP_DIR for it)",
    lib.LT_NOTE_CONFINED: "the program confined itself (seccomp): since then locktop asks"
    " the kernel for no more memory, and details may be missing",
    lib.LT_NOTE_NO_CLOCK: "watching ended when the program gave up reading the clock"
    " (strict seccomp or PR_SET_TSC)",
    lib.LT_NOTE_LOCKS_FOLDED: 'some locks found no room and are counted as "other locks", those'
    " waited for last: a lock may have had more acquisitions than are shown",
}


class PreloadSource:
    """Looks at one preloaded process."""

    def __init__(self, pid: int, rules: Rules | None = None, stop_threads: bool = False) -> None:
        """``rules``, ``stop_threads``: see attach()."""
        self._stop_threads = stop_threads
        self._rules = rules
        self._target = find_process(pid)
        memory = discover.open_memory(self._target)
        self._file = Session(pid, memory, stop_threads)
        self._tasks = Tasks(pid, self._target.own_pid)
        self._followed: Collection[int] | None = None
        self._holders, self._unobserved_probe = self._asking()
        self._followed_thread = FollowedThread(pid, self._tasks)
        self._peers = peer_processes.PeerProcesses(self._target)
        self._process = ProcessFigures(self._target)
        self._exe = self._executable()
        self._host = clean(socket.gethostname())
        self._last: Snapshot | None = None
        self._scanned_at = 0.0
        self._stopped = False
        self._unseen: dict[int, int] = {}  # in the last look: see BlindSpot.ask()
        self._hurried = False
        self._busy = threading.Lock()  # levels are set by another thread

    def _asking(self) -> tuple[Holders, UnobservedWaitProbe]:
        """What asks the kernel about threads of the program that runs now. Also tells its waits
        apart anew."""
        pid, file = self._target.pid, self._file
        self._classifier = Classifier(self._rules)

        def holds(asked: Collection[tuple[int, Lock]]) -> Collection[int]:
            listed = ((lock.id, file.newest.get(tid)) for tid, lock in asked)
            having = {id_ for id_, thread in listed if thread and id_ in file.reader.holds(thread)}
            got = [(tid, lock.id) for tid, lock in asked if lock.kind is Kind.SEM]
            return having | file.reader.got(got) if got else having

        holders = Holders(pid, self._tasks, file.native_stacks, file.python, holds)
        holders.follow(self._followed)
        return holders, UnobservedWaitProbe(
            pid, self._tasks, file.native_stacks, file.resolver, self._classifier
        )

    def close(self) -> None:
        """Let go of the process; a claim on it lapses by itself."""
        self._file.close()
        self._followed_thread.close()
        self._tasks.close()
        self._peers.close()

    def scan(self, resolve: bool = False) -> Snapshot:
        """See Source."""
        with self._busy:
            told = self._told(resolve)
            for _ in range(_MAX_MORE if resolve and self._last is None else 0):
                if told.ended or not self._asks_for_another_scan():
                    break
                time.sleep(_BETWEEN_S)
                told = self._told(resolve)
            if not told.ended:
                told = self._with_sleepers(told, resolve)
            # Of a process that is stopped nothing can be said: nobody holds a lock for long.
            found = () if self._stopped else patterns.described(contention_patterns.find(told))
            self._file.idle_cache.learn(told, resolve and not self._hurried)
            self._last = replace(told, patterns=found)
            return self._last

    def _asks_for_another_scan(self) -> bool:
        return (
            self._classifier.asks_for_another_scan or self._file.python.asks_for_another_scan
        ) and not self._hurried

    def _told(self, resolve: bool) -> Snapshot:
        with gc_pause.not_collected():
            snapshot = self._scanned(resolve)
        told = self._classifier.classify(self._resolved(snapshot) if resolve else snapshot)
        return semaphore_ownership.annotate_holders(told, self._uses)

    def _uses(self) -> dict[int, list[Use]]:
        return {tid: raw.uses() for tid, raw in self._file.reader.read_threads().items()}

    def waits(self) -> Mapping[int, WaitNow] | None:
        """See Source."""
        with self._busy:
            file = self._file
            if not self._state() or file.memory.is_unlinked() or self._executable() != self._exe:
                return None
            file.memory.refresh()
            if file.memory.size < file.header.limit:
                return None
            return wait_poll.read(file.reader.threads, file.clock, file.idle_cache)

    def hurry(self) -> None:
        """See Source."""
        self._hurried = True
        self._file.hurry()

    def follow(self, tid: int, locks: Collection[int] | None = None) -> None:
        """See Source."""
        self._followed_thread.follow(tid)
        self._followed = locks
        self._holders.follow(locks)

    def set_level(self, name: str) -> str:
        """See Source."""
        with self._busy:
            if not self._state():
                raise LocktopError(f"cannot set the level: process {self._target} has ended")
            left = self._follow_exec()
            if left is not None:
                raise LocktopError(f"cannot set the level: {left.notes[-1]}")
            return control.set_level(self._file.memory, name)

    def _scanned(self, resolve: bool) -> Snapshot:
        if self._last is not None and self._last.ended:
            return self._last
        state = self._state()
        if not state:
            return self._last_scan()
        left = self._follow_exec()
        return left if left is not None else self._scan(state, resolve)

    def _last_scan(self) -> Snapshot:
        """The process has ended; what it wrote can still be read (see ``ending``). Where that
        fails, the picture of the look before."""
        self._file.resolver.keep_maps()
        try:
            return self._resolved(self._scan("", resolve=True), _LAST_NAMES_S)
        except LocktopError as error:
            if self._last is None:
                raise
            note = f"these are not the final figures: {error}"
            return replace(self._last, ended=True, notes=(*self._last.notes, note))

    # ---- is it still the process that was attached to? ----

    def _state(self) -> str:
        """Return the letter of its state as the kernel shows it, "" when it has ended."""
        try:
            stat = procfs.stat(self._target.pid)
            # Its first thread may have ended before the others.
            over = stat.state in "ZX" and len(procfs.tids(self._target.pid)) < 2
        except (OSError, ValueError):
            return ""
        return "" if over or stat.start_time != self._target.start_time else stat.state

    def _executable(self) -> str:
        try:
            return procfs.exe(self._target.pid)
        except OSError:
            return ""

    def _follow_exec(self) -> Snapshot | None:
        """exec() leaves the pid and the start time; the library puts a new file under the name.

        Returns the last picture when the new program runs without the library.
        """
        exe = self._executable()
        replaced = self._file.memory.is_unlinked()
        if not replaced and (exe == self._exe or not exe):
            return None
        memory = self._file_after_exec()
        if memory is None and self._last is not None and self._is_without_library():
            note = f"the process has executed {clean(exe)}, which runs without the library"
            return replace(self._last, ended=True, notes=(*self._last.notes, note))
        if memory is None:
            return None  # removed by somebody; what is open can still be read
        if memory.same_file(self._file.memory):
            memory.close()
            return None
        self._file.close()
        self._file = Session(self._target.pid, memory, self._stop_threads)
        self._holders, self._unobserved_probe = self._asking()
        if self._hurried:
            self._file.hurry()
        self._exe = exe
        self._process.identify()
        return None

    def _file_after_exec(self) -> SharedMemory | None:
        """Return the file of the program that runs now, which may take a moment to make it."""
        for _ in range(_SCANS_AFTER_EXEC):
            try:
                return discover.open_memory(self._target)
            except LocktopError:
                time.sleep(_AFTER_EXEC_S)
        return None

    def _is_without_library(self) -> bool:
        maps = self._maps()
        return bool(maps) and discover.LIBRARY not in maps

    def _maps(self) -> bytes:
        try:
            return procfs.maps(self._target.pid)
        except OSError:
            return b""

    # ---- one look ----

    def _scan(self, state: str, resolve: bool) -> Snapshot:
        """``state``: see _state()."""
        file, ended = self._file, not state
        file.memory.refresh()
        if file.memory.size < file.header.limit:
            raise file.memory.broken(f"{file.memory.size} bytes are left of {file.header.limit}")
        file.clock.calibrate()
        if not ended:
            file.python.begin(file.read_waits)
        file.orders.refresh()
        reading = file.reader.read(file.orders.locks)
        file.rows = {row.lock: row for row in reading.rows}
        file.keep_waits(reading.newest)
        if file.unloads != reading.header.unloads:
            file.unloads = reading.header.unloads
            file.resolver.read_anew()
        file.given.refresh()
        if ended:
            file.recorder.read(reading.threads, _EVENTS_BUDGET_S)
            reading.end_at(exit_snapshot.last_sign_of_life(reading, file.recorder, file.seen_alive))
        else:
            file.seen_alive = reading.now
        tasks, tasks_at = self._read_tasks(reading, ended)
        now = locks_now(reading.newest.values(), tasks)
        if not ended:
            forget_former_owners(now, self._tasks, file.clock)
        counts = control.level_name(reading.control) != "dormant"
        threads = file.threads.of(reading.newest, now, tasks, tasks_at, counts)
        locks = file.locks.of(reading, now, file.frames)
        file.recorder.read(reading.threads, _EVENTS_BUDGET_S)
        deadlocks = self._deadlocks(threads, locks, tasks, reading, ended)
        order = file.orders.potential(locks, file.rows)
        snapshot = self._snapshot(reading, tasks, threads, locks, deadlocks, order)
        self._stopped = state in _STOPPED
        if self._stopped:
            note = _STOPPED[state].format(pid=self._target.pid)
            snapshot = replace(snapshot, notes=(*snapshot.notes, note))
        if not ended:
            snapshot = self._scanned_closely(snapshot, resolve)
        snapshot = file.python.shown(snapshot, {**self._followed_thread.sleeps, **file.waits})
        if file.python.learned:  # of a wait that may be over by the next look
            locks = file.locks.renamed(snapshot.locks, file.frames)
            snapshot = replace(snapshot, locks=locks)
        if ended:
            return exit_snapshot.of_the_dead(snapshot, reading, self._last)
        snapshot = replace(snapshot, notes=(*snapshot.notes, *self._notes_of_the_living()))
        waiters = unobserved_waiters.waiters(
            tasks, reading.newest, self._tasks, file.reader, file.memory
        )
        self._unseen = {tid: tasks[tid].runs for tid in waiters}
        return unobserved_waiters.told(snapshot, waiters)

    def _scanned_closely(self, snapshot: Snapshot, resolve: bool) -> Snapshot:
        native_stacks = self._file.native_stacks
        native_stacks.begin(_STACKS_OF_ALL_S if resolve else _STACKS_S)
        threads = self._followed_thread.told(snapshot.threads, resolve, native_stacks)
        if threads is snapshot.threads:
            return snapshot
        stacks = {stack: native_stacks.frames(stack) for stack in self._followed_thread.stacks}
        return replace(snapshot, threads=threads, stacks={**snapshot.stacks, **stacks})

    def _read_tasks(self, reading: Reading, ended: bool) -> tuple[dict[int, Task], float]:
        if ended:
            return exit_snapshot.last_tasks(reading, self._last), time.monotonic()
        now = time.monotonic()
        try:
            return self._tasks.read(_sleeps(reading.newest)), now
        except OSError:
            return {}, now

    def _deadlocks(
        self,
        threads: tuple[Thread, ...],
        locks: tuple[Lock, ...],
        tasks: dict[int, Task],
        reading: Reading,
        ended: bool,
    ) -> tuple[Deadlock, ...]:
        """Where one look shows a deadlock, the kernel is asked who sleeps, and where, and the
        threads are read once more at once: only what both looks show is one. A process that has
        ended cannot be asked; what it said before still holds."""
        file, by_id = self._file, {lock.id: lock for lock in locks}
        beside = () if ended else self._peers.threads(threads, by_id)
        handed_over = reading.handed_over or self._peers.handed_over
        doubt = deadlocks.HANDED_OVER if handed_over else ""
        complete = control.counts_from_the_start(reading.control)
        first = wait_for_graph.waits((*threads, *beside), by_id, complete)
        found = deadlocks.found(first)
        suspects = wait_for_graph.of(first, found)
        if not suspects.stops:
            return ()
        asleep = {tid for tid, stop in suspects.stops.items() if stop.asleep}
        if ended:
            awake = {tid for tid in asleep if (tid, first.stops[tid].seq) not in file.asleep}
            return deadlocks.confirmed(suspects, suspects, awake, doubt)
        doing = self._doing(asleep | {edge.tid for one in found for edge in one.cycle})
        awake = {tid for tid in asleep if tid not in doing or doing[tid].state != "S"}
        states = self._tasks.states(suspects.ended)
        awake |= {tid for tid in suspects.ended if states[tid]}
        suspects = wait_for_graph.without(suspects, _elsewhere(doing, threads))
        again = file.threads.waiting_threads(file.reader.read_threads(), tasks)
        beside = self._peers.threads(again, by_id)
        file.asleep = frozenset((tid, first.stops[tid].seq) for tid in asleep - awake)
        now = wait_for_graph.waits((*again, *beside), by_id, complete)
        return peer_processes.told(deadlocks.confirmed(suspects, now, awake, doubt), beside)

    def _doing(self, tids: Collection[int]) -> Mapping[int, Now]:
        """What threads do now; of none where we lack what asking takes, as descriptors."""
        try:
            return self._tasks.now(tids)
        except OSError:
            return {}

    def _snapshot(
        self,
        reading: Reading,
        tasks: dict[int, Task],
        threads: tuple[Thread, ...],
        locks: tuple[Lock, ...],
        deadlocks: tuple[Deadlock, ...],
        order: Found,
    ) -> Snapshot:
        file, now = self._file, time.time()
        recorded = [
            event_builder.event(raw, reading.now, file.clock) for raw in file.recorder.newest
        ]
        seen = tuple(event for event in recorded if event is not None)
        interval_s = time.monotonic() - self._scanned_at if self._scanned_at else 0.0
        self._scanned_at = time.monotonic()
        main = tasks.get(self._target.own_pid)
        misuses = (
            *file.misuses.read(reading.now),
            *fork_inherited.held_at_fork(
                self._target.pid,
                reading.header.forked_from,
                threads,
                {lock.id: lock for lock in locks},
            ),
        )
        return Snapshot(
            taken_at=iso(now),
            host=self._host,
            source="preload",
            duration_s=file.clock.seconds(reading.now - reading.header.clock0_ticks),
            interval_s=interval_s,
            process=self._process.scan(main.name if main else self._target.comm),
            threads=threads,
            locks=locks,
            deadlocks=deadlocks,
            lock_order=order.cycles,
            lock_order_unproven=order.unproven,
            stacks=self._stacks(threads, locks, seen, deadlocks, misuses, order.cycles),
            sites=self._sites(threads, locks, seen, deadlocks, order.cycles),
            events=seen,
            marks=tuple(
                event_builder.mark(raw, reading.now, file.clock) for raw in file.recorder.marks
            ),
            misuses=misuses,
            lost_events=file.recorder.lost,
            locks_left_out=reading.left_out,
            level=control.level_name(reading.control),
            complete=control.counts_from_the_start(reading.control),
            notes=self._notes(reading),
        )

    def _stacks(
        self,
        threads: tuple[Thread, ...],
        locks: tuple[Lock, ...],
        events: tuple[Event, ...],
        deadlocks: tuple[Deadlock, ...],
        misuses: tuple[Misuse, ...],
        order: tuple[OrderCycle, ...],
    ) -> dict[int, tuple[Frame, ...]]:
        wanted = {thread.waiting_for.stack for thread in threads if thread.waiting_for}
        wanted.update(entry.stack for lock in locks for entry in lock.wait_stacks)
        wanted.update(event.stack for event in events)
        wanted.update(edge.stack for found in deadlocks for edge in found.cycle)
        wanted.update(misuse.stack for misuse in misuses)
        wanted.update(edge.stack for cycle in order for edge in cycle.edges)
        wanted.discard(0)
        return {stack: self._file.frames.of(stack) for stack in sorted(wanted)}

    def _sites(
        self,
        threads: tuple[Thread, ...],
        locks: tuple[Lock, ...],
        events: tuple[Event, ...],
        deadlocks: tuple[Deadlock, ...],
        order: tuple[OrderCycle, ...],
    ) -> dict[int, Frame]:
        wanted = {held.site for thread in threads for held in thread.holds}
        wanted.update(thread.waiting_for.site for thread in threads if thread.waiting_for)
        wanted.update(blame.site for lock in locks for blame in lock.blame)
        wanted.update(event.site for event in events)
        wanted.update(edge.site for found in deadlocks for edge in found.cycle)
        wanted.update(edge.site for cycle in order for edge in cycle.edges)
        wanted.discard(0)
        return {site: self._file.resolver.site(site) for site in sorted(wanted)}

    def _notes(self, reading: Reading) -> tuple[str, ...]:
        bits = reading.header.notes
        if bits & lib.LT_NOTE_CONFINED:
            bits &= ~lib.LT_NOTE_NO_ROOM  # for another reason than the size of /dev/shm
        notes = [text for bit, text in _NOTES.items() if bits & bit]
        unwatched = reading.header.threads_unwatched
        if unwatched or reading.header.notes & lib.LT_NOTE_NO_THREAD_BLOCK:
            notes.append(f"{max(unwatched, 1)} threads run unwatched: there was no room for them")
        if reading.torn:
            notes.append("threads ended while they were read: figures may be off by theirs")
        if self._file.claim.note:
            notes.append(self._file.claim.note)
        elif control.level_name(reading.control) == "dormant":
            notes.append(_DORMANT)
        elif not control.counts_from_the_start(reading.control):
            notes.append(_WAS_DORMANT)
        return (*notes, *reading.notes, *self._file.resolver.notes(), *self._file.python.notes())

    def _notes_of_the_living(self) -> tuple[str, ...]:
        target = self._target
        owner = partial(user_name, target.uid)
        lost = ptrace_access.lost(target.pid, owner, partial(self._tasks.call, target.own_pid))
        return (*([lost] if lost else []), *discover.notes(target))

    def _with_sleepers(self, snapshot: Snapshot, resolve: bool) -> Snapshot:
        """With what the holders of contended locks do now, and those that wait unseen."""
        self._file.native_stacks.keep_only(self._tasks.living)
        self._file.native_stacks.begin(_STACKS_OF_ALL_S if resolve else _STACKS_S)
        locks = self._holders.told(snapshot, resolve)
        self._followed_thread.beside = self._holders.in_python
        # They have time of their own. The first picture does not wait for what stacks need.
        self._file.native_stacks.begin(_STACKS_UNSEEN_S if resolve else _STACKS_S)
        self._unobserved_probe.ask(self._unseen if resolve or self._last is not None else {})
        stacks = self._holders.stacks() | self._unobserved_probe.stacks()  # asks for their names
        if resolve:
            self._file.resolver.wait(_NAMES_S)
            stacks = self._holders.stacks() | self._unobserved_probe.stacks()
        stacks = {**snapshot.stacks, **stacks}
        notes = *snapshot.notes, *self._holders.notes()
        return self._unobserved_probe.told(
            replace(snapshot, locks=locks, stacks=stacks, notes=notes)
        )

    def _resolved(self, snapshot: Snapshot, patience_s: float = _NAMES_S) -> Snapshot:
        """Wait for names, and for those that only follow from them (a lock's from a stack's)."""
        file = self._file
        for _ in range(_MAX_ROUNDS):
            file.resolver.wait(patience_s)
            known = file.resolver.version
            locks = file.locks.renamed(snapshot.locks, file.frames)
            order = file.orders.potential(locks, file.rows, final=True)  # classes go by name
            edges = [edge for cycle in order.cycles for edge in cycle.edges]
            stacks = dict.fromkeys(
                [*snapshot.stacks, *(edge.stack for edge in edges if edge.stack)]
            )
            sites = dict.fromkeys([*snapshot.sites, *(edge.site for edge in edges if edge.site)])
            snapshot = replace(
                snapshot,
                locks=locks,
                lock_order=order.cycles,
                lock_order_unproven=order.unproven,
                stacks={stack: file.python.of(stack) for stack in sorted(stacks)},
                sites={site: file.resolver.site(site) for site in sorted(sites)},
            )
            if self._hurried or (file.resolver.wait(0) and file.resolver.version == known):
                break  # nothing more was asked
        if not snapshot.ended:
            snapshot = file.python.resolved(
                snapshot,
                {**self._followed_thread.sleeps, **file.waits},
                lambda: {**self._followed_thread.still_asleep(), **file.read_waits()},
            )
            locks = file.locks.renamed(snapshot.locks, file.frames)
            snapshot = replace(snapshot, locks=locks)
        notes = *snapshot.notes, *file.resolver.notes(), *file.python.notes()
        return replace(snapshot, notes=tuple(dict.fromkeys(notes)))


def _elsewhere(doing: Mapping[int, Now], threads: Sequence[Thread]) -> set[int]:
    """Tids of those that left their wait by a jump, as out of a handler of signals: their block
    shows it until they lock or wait again."""
    waits = {thread.tid: thread.waiting_for for thread in threads if thread.tid in doing}
    return {
        tid
        for tid, now in doing.items()
        if now.state in _SLEEPS
        and now.call is not None
        and now.call.number >= 0
        and not syscalls.is_futex(now.call.number)
        and (wait := waits.get(tid)) is not None
        and wait.kind not in _USE_CPU
    }


def _sleeps(threads: Mapping[int, RawThread]) -> dict[int, tuple[int, int]]:
    """Those waits in which a thread uses no processor time."""
    return {
        tid: (raw.block.birth, raw.wait.seq)
        for tid, raw in threads.items()
        if raw.wait and raw.wait.key >> lib.LT_KIND_SHIFT not in _MAY_SPIN
    }
