"""One scan of a preloaded process: the stages that read the shared memory."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence, Set
from functools import partial

from locktop.collector.analysis import semaphore_ownership, wait_for_graph
from locktop.collector.analysis.deadlocks import HANDED_OVER
from locktop.collector.analysis.hold_bounds import HoldKey
from locktop.collector.analysis.unblocked_holders import can_all_go_on
from locktop.collector.analysis.wait_for_graph import WaitForGraph
from locktop.collector.analysis.wait_requests import build_graph
from locktop.collector.linux import ptrace_access, syscalls
from locktop.collector.linux.process_info import iso
from locktop.collector.linux.target import user_name
from locktop.collector.linux.threads import KernelThread, ThreadMoment
from locktop.collector.model import Deadlock, Draft, Kind, Lock, Thread
from locktop.collector.model.kinds import SPINNING_KINDS
from locktop.collector.native import lib
from locktop.collector.shm import control
from locktop.collector.shm.kinds import numbers_of
from locktop.collector.shm.reader import RawThread
from locktop.collector.sources import deadlock_check, discover
from locktop.collector.sources.pipeline import Scan
from locktop.collector.sources.preload import (
    event_builder,
    exit_snapshot,
    fork_inherited,
    hold_proofs,
    peer_processes,
    unit_takers,
    unobserved_waits,
)
from locktop.collector.sources.preload.lock_state import forget_former_owners, lock_states
from locktop.collector.sources.preload.peer_processes import PeerProcesses
from locktop.collector.sources.preload.session import PreloadSession
from locktop.collector.sources.probe_set import StackBudgets
from locktop.collector.sources.probes.python_stacks import WaitKeys, merged_wait_keys

#: Seconds of one scan for the flight recorder: counters never wait for it.
_EVENTS_BUDGET_S = 0.02
#: A name may lead to a second name: each wrapper that made a lock leads to its caller.
_MAX_ROUNDS = 20
_DORMANT = (
    "the library is dormant: nothing is counted, and waits and holders are not known until another"
    " level is set"
)
_WAS_DORMANT = (
    "the library was dormant for a time: calls of that time are not counted, and holders that took"
    " a lock before its end may not be known"
)
_KIND_SHIFT: int = lib.LT_KIND_SHIFT
_MAY_SPIN = numbers_of(SPINNING_KINDS)
_SLEEPS = "SD"
#: By the state of the process's first thread.
_STOPPED = {
    "T": "a signal has stopped the process: no thread goes on before `kill -CONT {pid}`",
    "t": "a debugger or tracer has stopped the process, or its first thread: no stopped thread goes"
    " on",
}
_NOTES = {
    lib.LT_NOTE_NO_ROOM: "the process's shared memory is full: details are missing"
    " (raise LOCKTOP_MEMORY where it is set, else the size of /dev/shm, or set LOCKTOP_DIR for it)",
    lib.LT_NOTE_CONFINED: "the program confined itself (seccomp): since then the library asks"
    " the kernel for no more memory, and details may be missing",
    lib.LT_NOTE_NO_CLOCK: "the watch ended when the program gave up the clock (strict seccomp or"
    " PR_SET_TSC)",
    lib.LT_NOTE_LOCKS_FOLDED: 'some locks found no room and are counted as "other locks", those'
    " with waits last: a lock may have had more acquisitions than are shown",
    lib.LT_NOTE_SHORT_RINGS: "some threads keep fewer records than LOCKTOP_RING says: for so many"
    " there was no room",
    lib.LT_NOTE_CALLS_UNNAMED: "LOCKTOP_CALLS_MATCH: some code has no symbol table, or too many"
    " functions; its function calls are not counted",
}


class PreloadScan(Scan):
    """One scan of a process that runs with the library."""

    pause_s = 0.25
    budgets = StackBudgets(0.0, 0.0, of_holders=0.01, of_unobserved_waits=0.01)
    budgets_of_full_scan = StackBudgets(0.0, 0.0, of_holders=2.0, of_unobserved_waits=2.0)

    def __init__(
        self, session: PreloadSession, peers: PeerProcesses, state: str, resolve: bool
    ) -> None:
        """Args:
        session: the program that the process executes.
        peers: other processes that share locks with this one.
        state: the process's state letter (proc_pid_stat(5)); "" after its end.
        resolve: whether to wait for all names.
        """
        super().__init__(session.watched, session.probes, resolve)
        self._session = session
        self._peers = peers
        self._state = state
        self.has_ended = not state
        self.is_stopped = state in _STOPPED

    # ---- reading ----

    def read(self) -> None:
        """Copy the shared memory and the kernel's view of the threads, and begin the draft."""
        session = self._session
        session.memory.refresh()
        if session.memory.size < session.header.limit:
            left = f"{session.memory.size} bytes are left of {session.header.limit}"
            raise session.memory.broken(left)
        session.clock.calibrate()
        if not self.has_ended:
            session.python.begin(session.read_waits)
        session.orders.refresh()
        session.misuses.refresh()
        wanted = session.misuses.locks.union(session.orders.locks)
        is_last = self.resolve or self.has_ended
        reading = self._reading = session.reader.read(wanted, all_lines=is_last)
        self.read_at_s = self.watched.tasks.locks_read_s = time.monotonic()
        session.rows = {row.lock: row for row in reading.rows}
        if not self.has_ended:
            reading.newest = session.wakeups.apply(reading.newest, session.rows)
        session.keep_waits(reading.newest)
        if session.unloads != reading.header.unloads:
            session.unloads = reading.header.unloads
            session.resolver.reread()
        session.given.refresh()
        if self.has_ended:
            session.recorder.read(session.reader.rings, _EVENTS_BUDGET_S)
            reading.end_at(
                exit_snapshot.last_sign_of_life(reading, session.recorder, session.seen_alive)
            )
        else:
            session.seen_alive = reading.now
        self._tasks_at = time.monotonic()
        self._tasks = self._read_tasks()
        self._lock_states = lock_states(reading.newest.values(), self._tasks)
        if not self.has_ended:
            forget_former_owners(self._lock_states, self.watched.tasks, session.clock)
        self.draft = self._new_draft()

    def _read_tasks(self) -> dict[int, KernelThread]:
        if self.has_ended:
            return exit_snapshot.last_tasks(self._reading, self.watched.last)
        try:
            return self.watched.tasks.read(_sleeps(self._reading.newest, self._session.waits))
        except OSError:
            return {}

    def _new_draft(self) -> Draft:
        watched, session, reading = self.watched, self._session, self._reading
        # From reading to reading, as the rates of the locks: a scan may lose its CPU in between.
        since, session.last_reading = session.last_reading, reading.now
        main = self._tasks.get(watched.target.own_pid)
        return Draft(
            taken_at=iso(time.time()),
            host=watched.host,
            source="preload",
            duration_s=session.clock.seconds(reading.now - reading.header.clock0_ticks),
            interval_s=max(session.clock.seconds(reading.now - since), 0.0) if since else 0.0,
            process=watched.figures.scan(main.name if main else watched.target.comm),
            threads=(),
            locks=(),
            locks_left_out=reading.left_out,
            unloads=reading.header.unloads,
            stopped=self.is_stopped,
            level=control.level_name(reading.control),
            complete=control.counts_from_the_start(reading.control),
            notes=self._notes(),
        )

    def _notes(self) -> tuple[str, ...]:
        session, reading = self._session, self._reading
        bits = reading.header.notes
        if bits & lib.LT_NOTE_CONFINED:
            bits &= ~lib.LT_NOTE_NO_ROOM  # the reason is not the size of /dev/shm
        notes = [text for bit, text in _NOTES.items() if bits & bit]
        unwatched = reading.header.threads_unwatched
        if unwatched or reading.header.notes & lib.LT_NOTE_NO_THREAD_BLOCK:
            notes.append(f"{max(unwatched, 1)} threads run unwatched, because no room was left")
        if reading.lines_left_out:
            notes.append(
                f"{reading.lines_left_out} waits and holds found no room in the histograms"
            )
        if reading.torn:
            notes.append("threads ended during the reading: sums may lack their figures")
        if session.claim.note:
            notes.append(session.claim.note)
        elif control.level_name(reading.control) == "dormant":
            notes.append(_DORMANT)
        elif not control.counts_from_the_start(reading.control):
            notes.append(_WAS_DORMANT)
        notes += (*reading.notes, *session.resolver.notes(), *session.python.notes())
        if self.is_stopped:
            notes.append(_STOPPED[self._state].format(pid=self.watched.target.pid))
        if not self.has_ended:
            notes += self._notes_of_the_living()
        return tuple(notes)

    def _notes_of_the_living(self) -> tuple[str, ...]:
        target, tasks = self.watched.target, self.watched.tasks
        owner = partial(user_name, target.uid)
        lost = ptrace_access.lost_insight(target.pid, owner, partial(tasks.call, target.own_pid))
        return (*([lost] if lost else []), *discover.notes(target))

    # ---- threads, locks, deadlocks, orders, events ----

    def build_threads(self) -> None:
        """Fill in the threads: their waits, holds and times."""
        counts = self.draft.level != "dormant"
        self.draft.threads = self._session.threads.build(
            self._reading.newest, self._lock_states, self._tasks, self._tasks_at, counts
        )

    def build_locks(self) -> None:
        """Fill in the locks: their counters, holders, waiters and blame."""
        session = self._session
        self.draft.locks = session.locks.build(self._reading, self._lock_states, session.frames)

    def add_unobserved_waits(self) -> None:
        """Fill in the waits in futex calls that the library does not observe, and their locks.

        The first snapshot of a screen does not wait for the stacks of these waits.
        """
        if self.has_ended:
            return
        session, draft = self._session, self.draft
        waiters = unobserved_waits.find_waiters(
            self._tasks, self._reading.newest, self.watched.tasks, session.reader, session.memory
        )
        probe = session.unobserved_waits
        has_time = self.resolve or self.watched.last is not None
        self.probes.native_stacks.begin(self.stack_budgets.of_unobserved_waits if has_time else 0.0)
        probe.query({tid: self._tasks[tid].runs for tid in waiters})
        session.unobserved_locks.annotate(draft, list(probe.waits.values()), time.monotonic())
        unknown = {
            thread.tid
            for thread in draft.threads
            if thread.waiting_for is None or thread.waiting_for.kind is Kind.FUTEX
        }
        unobserved_waits.annotate_waiters(draft, tuple(tid for tid in waiters if tid in unknown))

    def check_deadlocks(self) -> None:
        """Fill in the deadlocks that two readings show.

        A process that has ended cannot be read again; what was confirmed before still holds.
        """
        draft, by_id = self.draft, {lock.id: lock for lock in self.draft.locks}
        peers = () if self.has_ended else self._peers.threads(draft.threads, by_id)
        if not peers and can_all_go_on(draft.threads):
            return
        handed_over = self._reading.handed_over or self._peers.handed_over
        first_thread = self.watched.target.pid
        self._session.left_by_fork = fork_inherited.owners_left_by_fork(
            first_thread,
            self._reading.header.forked_from,
            draft.threads,
            self._session.left_by_fork,
        )
        graph_of = partial(
            build_graph,
            locks=by_id,
            complete=draft.complete,
            first_thread=first_thread,
            left_by_fork=self._session.left_by_fork,
            lost=self._lost_owners(),
            initialisers=self.initialisers,
        )
        first = graph_of((*draft.threads, *peers))

        def read_again(suspects: WaitForGraph) -> WaitForGraph:
            nonlocal peers
            if self.has_ended:
                return suspects
            session = self._session
            threads = session.wakeups.apply(session.reader.read_threads(), session.rows)
            again = self._join_unobserved_waits(
                session.threads.waiting_threads(threads, self._tasks), by_id
            )
            peers = self._peers.threads(again, by_id)
            return graph_of((*again, *peers))

        doubt = HANDED_OVER if handed_over else ""
        confirmed = deadlock_check.check(first, self._query_kernel, read_again, doubt)
        draft.deadlocks = peer_processes.annotate(confirmed, peers) if peers else confirmed

    def _lost_owners(self) -> Set[int]:
        if self.has_ended:
            return frozenset()
        return self.watched.lost_owners.find(self.draft.threads, self.draft.locks)

    def _join_unobserved_waits(
        self, threads: Sequence[Thread], by_id: Mapping[int, Lock]
    ) -> Sequence[Thread]:
        """Return the threads of a second reading with the unobserved waits that go on."""
        session = self._session
        waits = session.unobserved_waits.still_waiting()
        if not waits:
            return threads
        objects = session.unobserved_locks.objects(waits, {thread.tid for thread in threads})
        ids = {(lock.kind, lock.address): id_ for id_, lock in by_id.items() if not lock.destroyed}
        return session.unobserved_locks.threads_with(threads, waits, objects, ids, time.monotonic())

    def _query_kernel(
        self, suspects: WaitForGraph, suspected: Sequence[Deadlock]
    ) -> tuple[WaitForGraph, Set[int]]:
        """Return the suspects that stay, and the threads that are awake, as KernelQuery does."""
        session, tasks = self._session, self.watched.tasks
        waits = {tid: (tid, blocked.seq) for tid, blocked in suspects.blocked.items()}
        asleep = {tid for tid, blocked in suspects.blocked.items() if blocked.must_be_asleep}
        if self.has_ended:
            return suspects, {tid for tid in asleep if waits[tid] not in session.asleep}
        in_cycles = {edge.tid for deadlock in suspected for edge in deadlock.cycle}
        doing = self._doing(asleep | in_cycles)
        awake = {tid for tid in asleep if tid not in doing or doing[tid].state != "S"}
        states = tasks.states(suspects.ended)
        awake |= {tid for tid in suspects.ended if states[tid]}
        session.asleep = frozenset(waits[tid] for tid in asleep - awake)
        return wait_for_graph.remove_waits(suspects, _elsewhere(doing, self.draft.threads)), awake

    def _doing(self, tids: Set[int]) -> Mapping[int, ThreadMoment]:
        """Activities of threads, none where locktop lacks descriptors."""
        try:
            return self.watched.tasks.moments(tids)
        except OSError:
            return {}

    def find_lock_orders(self) -> None:
        """Fill in potential deadlocks, perhaps with the result of an earlier scan."""
        self._find_lock_orders(final=False)

    def _find_lock_orders(self, final: bool) -> None:
        session = self._session
        draft, notes = self.draft, self._reading.header.notes
        potential = session.orders.potential(draft.locks, session.rows, final)
        draft.lock_order, draft.lock_order_unproven = potential.cycles, potential.unproven
        draft.lock_order_search_cut = potential.is_cut
        draft.lock_orders_left_out = bool(notes & lib.LT_NOTE_ORDERS_LEFT_OUT)

    def read_events(self) -> None:
        """Fill in the records of the flight recorder, and the misuses of locks."""
        session, reading, draft = self._session, self._reading, self.draft
        session.recorder.read(session.reader.rings, _EVENTS_BUDGET_S)
        recorder, clock = session.recorder, session.clock
        recorded = [event_builder.event(raw, reading.now, clock) for raw in recorder.newest]
        draft.events = tuple(event for event in recorded if event is not None)
        draft.marks = tuple(event_builder.mark(raw, reading.now, clock) for raw in recorder.marks)
        draft.lost_events = recorder.lost
        by_id = {lock.id: lock for lock in draft.locks}
        inherited = fork_inherited.held_at_fork(
            self.watched.target.pid, reading.header.forked_from, draft.threads, by_id
        )
        misuses = session.misuses.misuses(reading.now)
        if self._tasks:  # else locktop lacks descriptors, and every thread would seem to be gone
            misuses = session.kept_locks.add_to(
                misuses, reading, self._tasks, session.rows, self.watched.tasks
            )
        draft.misuses = (*misuses, *inherited)

    def build_parts(self) -> None:
        for extension, part in self._session.parts:
            if extension.entry_stacks is None or extension.name in self.watched.wanted_sections:
                self.guard(extension, partial(part.build, self.draft, self._reading))

    def complete_parts(self) -> None:
        draft, reading, is_last = self.draft, self._reading, self.resolve or self.has_ended
        results = [
            self.guard(extension, partial(part.complete, draft, reading, is_last))
            for extension, part in self._session.parts
        ]
        if any(results):
            self.add_stacks()
            if self.resolve:
                self.await_resolver()
                self.refresh_names()

    # ---- conclusions ----

    def apply_exit(self) -> None:
        """Fill in how the process ended."""
        if self.has_ended:
            exit_snapshot.annotate(self.draft, self._reading, self.watched.last)

    def wait_for_names(self) -> None:
        """Wait until no name leads to a further one; then search the lock orders.

        Classes of locks depend on names, so each search before would be in vain.
        """
        searched_at, resolver = -1, self.probes.resolver
        for _ in range(_MAX_ROUNDS):
            are_all_read = self.await_resolver()
            version = resolver.version
            self.rename_locks()
            self.add_stacks()
            self.refresh_names()
            if not are_all_read:
                break
            if resolver.count_left() or resolver.version != version:
                continue
            if searched_at == version:
                return  # the search has requested no further name
            self._find_lock_orders(final=True)
            self.add_stacks()
            searched_at = version
        self._find_lock_orders(final=True)
        self.add_stacks()

    def find_wakers(self) -> None:
        """Fill in the holders of futexes that are locks, by who woke the waiters."""
        session, waker = self._session, self.probes.classifier.waker
        wakers = session.wakers
        if not wakers.request_names(self.draft, self._reading, waker):
            return
        if self.resolve:
            self.await_resolver()
        wakers.annotate(self.draft, self._reading, session.rows, waker)
        self.add_stacks()
        if self.resolve:
            self.await_resolver()
            self.refresh_names()

    def proved_holds(self) -> Mapping[HoldKey, float]:
        """See Scan: since some waits began, the lock was not released."""
        reading, session = self._reading, self._session
        waits = [raw.wait for raw in reading.newest.values() if raw.wait is not None]
        shift = reading.header.wait_shift
        return hold_proofs.find(self.draft, waits, session.rows, reading.now, shift, session.clock)

    def find_semaphore_owners(self) -> None:
        """Fill in the owners of semaphores that the program uses as locks."""
        session = self._session
        semaphore_ownership.annotate_holders(self.draft)
        if unit_takers.annotate(self.draft, session.frames, session.unloaded_code):
            self.add_stacks()
            if self.resolve:
                self.await_resolver()
                self.refresh_names()

    def probe_holders(self) -> None:
        """Fill in the activity of the holders of contended locks."""
        self.probes.native_stacks.keep_only(self.watched.tasks.living)
        super().probe_holders()

    def describe_unobserved_waits(self) -> None:
        """Fill in the details of the unobserved waits whose objects are not known."""
        probe = self._session.unobserved_waits
        if self.resolve:
            probe.request_names()
            self.await_resolver()
        probe.annotate(self.draft)

    def wait_keys(self) -> WaitKeys:
        return merged_wait_keys(
            self.watched.followed_thread.sleeps,
            self._session.waits,
            self.probes.gil_holders.wait_keys(),
        )

    def thread_lives(self) -> Mapping[int, int]:
        newest = self._reading.newest
        return {tid: raw.block.birth for tid, raw in newest.items()}

    def read_wait_keys_again(self) -> WaitKeys:
        return merged_wait_keys(
            self.watched.followed_thread.still_asleep(),
            self._session.read_waits(),
            self.probes.gil_holders.wait_keys(),
        )

    def rename_locks(self) -> None:
        self._session.locks.rename(self.draft, self._session.frames)
        self._session.unobserved_locks.rename(self.draft)


def _elsewhere(doing: Mapping[int, ThreadMoment], threads: Sequence[Thread]) -> set[int]:
    """Return the ids of threads that left their wait by a jump, as out of a signal handler.

    The thread's block shows the wait until the thread locks or waits again.
    """
    waits = {thread.tid: thread.waiting_for for thread in threads if thread.tid in doing}
    return {
        tid
        for tid, now in doing.items()
        if now.state in _SLEEPS
        and now.call is not None
        and now.call.number >= 0
        and not syscalls.is_futex(now.call.number)
        and (wait := waits.get(tid)) is not None
        and wait.kind not in SPINNING_KINDS
    }


def _sleeps(threads: Mapping[int, RawThread], waits: WaitKeys) -> WaitKeys:
    """Return those of ``waits`` in which a thread uses no CPU, by tid."""
    spinning = {
        tid for tid, raw in threads.items() if raw.wait and raw.wait.key >> _KIND_SHIFT in _MAY_SPIN
    }
    if not spinning:
        return waits
    return {tid: wait for tid, wait in waits.items() if tid not in spinning}
