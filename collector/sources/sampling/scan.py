"""One scan of a sampled process: the stages that read samples."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from functools import partial
from typing import ClassVar

from locktop.collector.analysis.wait_for_graph import WaitForGraph
from locktop.collector.analysis.wait_requests import build_graph
from locktop.collector.linux import ptrace_access
from locktop.collector.linux.process_info import iso
from locktop.collector.linux.syscalls import SystemCall
from locktop.collector.model import CONTENTION_KINDS, Deadlock, Draft, Frame, Kind, Lock, Thread
from locktop.collector.render.words.foreign_code import innermost_program_frame
from locktop.collector.sources import deadlock_check, discover
from locktop.collector.sources.pipeline import Scan
from locktop.collector.sources.probe_set import StackBudgets
from locktop.collector.sources.probes.python_stacks import WaitKeys, merged_wait_keys
from locktop.collector.sources.sampling import builder
from locktop.collector.sources.sampling.sampled_wait import SampledWait
from locktop.collector.sources.sampling.sampler import Sample
from locktop.collector.sources.sampling.session import SamplingSession

#: Seconds between the two samples of a first scan, because one sample alone shows no time.
_FIRST_PAUSE_S = 0.05
#: Stacks whose memory is read at once, before it is known whether the time suffices for all.
_STACKS_AT_ONCE = 32
_STOPPED = "Tt"  # states of a thread that a signal or a debugger has stopped
_NOTE = (
    "there is a sample every {every:.0f} ms: shorter waits are met by chance; the numbers of"
    " acquisitions and the hold times are not known"
)
_UNKNOWN_BEGINS = (
    "this kernel does not tell since when threads wait: a wait of at least so long is known only"
    " for as long as locktop has watched it (`locktop check` watches for 10 s)"
)
UNKNOWN_FUTEX = "some threads wait in futex calls whose object or holder is not known"


class SamplingScan(Scan):
    """One scan of a process without the library."""

    first_pause_s: ClassVar[float] = _FIRST_PAUSE_S
    budgets = StackBudgets(0.005, 0.002, of_holders=0.002, of_unobserved_waits=0.0)
    budgets_of_full_scan = StackBudgets(2.0, 2.0, of_holders=2.0, of_unobserved_waits=0.0)

    def __init__(
        self, session: SamplingSession, begun: float, without_library: str, resolve: bool
    ) -> None:
        """Args:
        session: the program that the process executes.
        begun: when its sampling began, time.monotonic().
        without_library: why the process has no library, as a clause.
        resolve: whether to wait for all names.
        """
        super().__init__(session.watched, session.probes, resolve)
        self._session = session
        self._begun = begun
        self._without_library = without_library

    @property
    def session(self) -> SamplingSession:
        """The state that all scans of the program share."""
        return self._session

    # ---- reading ----

    def read(self) -> None:
        """Take a sample, and begin the draft."""
        session, watched = self._session, self.watched
        if not watched.scanned_at:
            began = time.monotonic()
            session.stacks.prepare()
            time.sleep(max(0.0, began + self.first_pause_s - time.monotonic()))
        session.python.begin(self.read_wait_keys_again)
        session.sample()
        if self.resolve:
            session.await_sleeps()
        if ptrace_access.memory_refusal(watched.target.pid):
            raise PermissionError  # the kernel allowed it before
        session.find_once_runners(self.stack_budgets.of_waits)
        session.find_recursive_locks(self.stack_budgets.of_waits)
        session.query_begins(self.stack_budgets.of_waits)
        self._now_s = self.read_at_s = watched.tasks.locks_read_s = session.sampled_at
        self._waits = session.waits
        before = watched.scanned_at or self._begun
        watched.scanned_at = self._now_s
        living = {sample.kernel_tid for sample in session.samples.values()}
        watched.tasks.keep_only(living)
        watched.tasks.note_sleeps(session.noted_sleep)
        session.stacks.keep_only(living)
        self._stacks = self._stacks_of_waits()
        self.draft = self._new_draft(self._now_s - before)

    def _new_draft(self, interval_s: float) -> Draft:
        session, watched = self._session, self.watched
        unknown = tuple(sorted(
            tid for tid, wait in self._waits.items() if wait.sync_object.kind is Kind.FUTEX
        ))  # fmt: skip
        main = session.samples.get(watched.target.own_pid)
        notes = [
            f"sampled, not counted: {self._without_library}",
            _NOTE.format(every=1000 * interval_s / max(session.taken, 1)),
            *([UNKNOWN_FUTEX] if unknown else ()),
            *([] if session.begins.is_complete else [_UNKNOWN_BEGINS]),
            *discover.notes(watched.target),
            *session.resolver.notes(),
            *session.python.notes(),
        ]
        session.taken = 0
        return Draft(
            taken_at=iso(time.time()),
            host=watched.host,
            source="proc",
            duration_s=self._now_s - self._begun,
            interval_s=interval_s,
            process=watched.figures.scan(main.name if main else watched.target.comm),
            threads=(),
            locks=(),
            unobserved_waiters=unknown,
            stopped=main is not None and main.state in _STOPPED,
            level="sampled",
            notes=tuple(notes),
        )

    # ---- threads, locks, deadlocks ----

    def build_threads(self) -> None:
        """Fill in the threads: their waits, holds and times."""
        session, draft = self._session, self.draft
        draft.threads = session.builder.threads(
            session.samples, self._waits, self._stacks, self._now_s, draft.interval_s
        )

    def build_locks(self) -> None:
        """Fill in the locks that samples saw waiters for."""
        draft = self.draft
        builder = self._session.builder
        draft.locks = builder.locks(self._waits, self._now_s, draft.interval_s)
        draft.crowded = builder.crowded(self._waits.values())

    def check_deadlocks(self) -> None:
        """Fill in the deadlocks that this sample and the next one show.

        A thread that was on no CPU between two samples did nothing. The kernel's state shows
        whether such a thread still waits, or was released and waits for a CPU.
        """
        if not (self.initialisers or self._may_be_deadlocked()):
            return
        session, draft = self._session, self.draft
        by_id = {lock.id: lock for lock in draft.locks}
        first_tid = self.watched.target.own_pid
        lost = self.watched.lost_owners.find(draft.threads, draft.locks)

        def graph(threads: Sequence[Thread]) -> WaitForGraph:
            ended = session.builder.ended_owners(session.samples, session.waits, first_tid)
            return build_graph((*threads, *ended), by_id, lost=lost, initialisers=self.initialisers)

        def read_again(_: WaitForGraph) -> WaitForGraph:
            session.sample()
            recheck = session.builder.threads(
                session.samples,
                session.waits,
                self._stacks,
                session.sampled_at,
                draft.interval_s,
                is_recheck=True,
            )
            return graph(recheck)

        first = graph(draft.threads)
        draft.deadlocks = deadlock_check.check(first, self._query_kernel, read_again)

    def _query_kernel(
        self, suspects: WaitForGraph, _: Sequence[Deadlock]
    ) -> tuple[WaitForGraph, Set[int]]:
        """Return the suspects that stay, and the threads that are awake, as KernelQuery does."""
        asleep = {tid for tid, blocked in suspects.blocked.items() if blocked.must_be_asleep}
        states = self.watched.tasks.states(asleep | suspects.ended)
        awake = {tid for tid in asleep if states[tid] != "S"}
        awake |= {tid for tid in suspects.ended if states[tid]}
        return suspects, awake

    def _may_be_deadlocked(self) -> bool:
        """Return whether a thread waits at a barrier, for a waiting thread, or for an ended one.

        Without such a wait samples cannot show a deadlock, and the scan saves the search.
        """
        waits, living = self._waits, self._session.samples
        for wait in waits.values():
            by = wait.sync_object.owner or wait.sync_object.awaits
            if wait.sync_object.kind is Kind.BARRIER or (by and (by in waits or by not in living)):
                return True
        return False

    # ---- stacks ----

    def _stacks_of_waits(self) -> dict[int, int]:
        """Return the stacks of waits by tid. The time may not suffice for all new ones.

        Waits from earlier samples come first, the longest first. Then contention comes before other
        waits, and one waiter of each lock before further waiters.
        """
        session = self._session
        stacks: dict[int, int] = {}
        new: list[tuple[SampledWait, Sample, SystemCall]] = []
        for tid, wait in self._waits.items():
            sample, unknown = session.samples[tid], wait.sync_object.kind is Kind.FUTEX
            stack = session.stacks.known_id(sample.kernel_tid, wait.seq, unknown)
            if stack:
                stacks[tid] = stack
            elif sample.call is not None:  # else it is awake, and waits on for Python's GIL
                new.append((wait, sample, sample.call))
        if not new:
            return stacks
        others = Counter(self._waits[tid].sync_object.address for tid in stacks)
        order = []
        for index, (wait, _, _) in enumerate(new):
            sync_object = wait.sync_object
            order.append(
                (
                    wait.since,
                    sync_object.kind not in CONTENTION_KINDS,
                    others[sync_object.address],
                    index,
                )
            )
            others[sync_object.address] += 1
        order.sort()
        session.stacks.begin(self.stack_budgets.of_waits)
        stacks |= self.new_stacks(
            [new[index] for since, _, _, index in order if since < self._now_s]
        )
        session.stacks.end_within(self.stack_budgets.of_new_waits)
        return stacks | self.new_stacks(
            [new[index] for since, _, _, index in order if since >= self._now_s]
        )

    def new_stacks(self, waits: Sequence[tuple[SampledWait, Sample, SystemCall]]) -> dict[int, int]:
        """Return the stacks of these waits by tid, as many as the time suffices for."""
        session = self._session
        stacks: dict[int, int] = {}
        for start in range(0, len(waits), _STACKS_AT_ONCE):
            if not session.stacks.has_time:
                break
            some = waits[start : start + _STACKS_AT_ONCE]
            session.stacks.expect(call for _, _, call in some)
            still_asleep = session.sampler.asleep(sample for _, sample, _ in some)
            for wait, sample, call in some:
                if sample.kernel_tid not in still_asleep:
                    continue
                asleep = call, partial(session.sampler.still_sleeps, sample)
                unknown = wait.sync_object.kind is Kind.FUTEX
                stack = session.stacks.stack_id(sample.kernel_tid, wait.seq, unknown, asleep)
                if stack:
                    stacks[wait.tid] = stack
        return stacks

    # ---- names ----

    def merge_python_stacks(self) -> None:
        """Fill in the known Python functions."""
        python = self.probes.python
        python.merge(self.draft, self.wait_keys() if python.runs_in(self.draft.stacks) else {})
        if python.learned:  # such a wait may be over by the next scan
            self.rename_locks()
        else:
            self._give_locks_their_waiters_stacks()

    def wait_for_names(self) -> None:
        """Wait for the names of functions, then fill them in; the names of locks follow later."""
        self.await_resolver()
        self.draft.stacks = {stack: self.frames(stack) for stack in self.draft.stacks}

    def rename_locks(self) -> None:
        self._give_locks_their_waiters_stacks()
        names = {
            lock.id: lock.name
            for lock in self._session.builder.locks(self._waits, self._now_s, self.draft.interval_s)
        }
        self.draft.locks = builder.rename_locks(self.draft.locks, names)

    def _give_locks_their_waiters_stacks(self) -> None:
        """If stacks have Python functions, give the locks the same stacks as their waiters."""
        if self.probes.python.has_merged:
            self.draft.locks = builder.add_stacks(self.draft.locks, self.draft.threads)

    def classify_waits(self) -> None:
        """Decide which waits are idle, also of those that are over, by their stacks."""
        self._session.met_stacks.annotate(self.draft, self.frames)
        super().classify_waits()

    def probe_holders(self) -> None:
        """Fill in what holders do, and count the queues for their locks."""
        super().probe_holders()
        locks, queues = self.draft.locks, self.watched.queues
        locations = {lock.id: frame for lock in locks if (frame := self._holder_location(lock))}
        queues.add(*self._session.estimator.take_queues(), locations)

    def _holder_location(self, lock: Lock) -> Frame | None:
        """Return where the code of the holder is at this scan; None if it is not known."""
        now = lock.holder_activity
        if now is None or not now.stack or now.stack_age_s:
            return None
        frame = innermost_program_frame(self.draft.stacks.get(now.stack, ()))
        return frame if frame is not None and frame.function else None

    def wait_keys(self) -> WaitKeys:
        return merged_wait_keys(
            self.watched.followed_thread.sleeps,
            self._session.wait_keys(),
            self.probes.gil_holders.wait_keys(),
        )

    def thread_lives(self) -> Mapping[int, int]:
        return {tid: sample.life for tid, sample in self._session.samples.items()}

    def read_wait_keys_again(self) -> WaitKeys:
        try:
            self._session.sample()
        except OSError:
            return {}  # later stages notice the end of the process
        sleeps = self.watched.followed_thread.still_asleep()
        of_gil = self.probes.gil_holders.wait_keys()
        return merged_wait_keys(sleeps, self._session.wait_keys(), of_gil)
