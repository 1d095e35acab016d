"""One scan of a sampled process: the stages that samples answer."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence, Set
from functools import partial

from locktop.collector.analysis.wait_for_graph import WaitForGraph
from locktop.collector.analysis.wait_requests import build_graph
from locktop.collector.linux import ptrace_access
from locktop.collector.linux.process_info import iso
from locktop.collector.linux.syscalls import SystemCall
from locktop.collector.model import CONTENTION_KINDS, Deadlock, Draft, Kind
from locktop.collector.sources import deadlock_check, discover
from locktop.collector.sources.pipeline import Scan, StackTimes, waits_of
from locktop.collector.sources.probes.python_stacks import Waits
from locktop.collector.sources.sampling import builder
from locktop.collector.sources.sampling.sampler import Sample
from locktop.collector.sources.sampling.session import SamplingSession
from locktop.collector.sources.sampling.wait_objects import ObjectWait

#: Seconds between the two samples of a first scan: one sample alone tells no time.
_FIRST_S = 0.05
#: What these need is read at once, before it is known that there is time for all.
_STACKS_AT_ONCE = 32
_NOTE = (
    "there is a sample every {every:.0f} ms: shorter waits are met by chance; how often locks were"
    " taken, and how long they were held, is not known"
)
_UNTOLD = "some threads wait in futex calls of which it cannot be told for what, or who holds it"


class SamplingScan(Scan):
    """One scan of a process that nobody prepared."""

    times = StackTimes(0.005, 0.002, of_holders=0.002, of_unobserved_waits=0.0)
    times_of_all = StackTimes(2.0, 2.0, of_holders=2.0, of_unobserved_waits=0.0)

    def __init__(
        self, session: SamplingSession, begun: float, without_library: str, resolve: bool
    ) -> None:
        """Args:
        session: the program that the process executes.
        begun: when sampling of it began, time.monotonic().
        without_library: why the process has no library, as a clause.
        resolve: wait for all names.
        """
        super().__init__(session.watched, session.probes, resolve)
        self._session = session
        self._begun = begun
        self._without_library = without_library

    # ---- what is read ----

    def read(self) -> None:
        """Take a sample, and begin the draft."""
        session, watched = self._session, self.watched
        if not watched.scanned_at:
            began = time.monotonic()
            session.stacks.prepare()
            time.sleep(max(0.0, began + _FIRST_S - time.monotonic()))
        session.python.begin(self.read_waits_again)
        session.sample()
        if ptrace_access.memory_refused(watched.target.pid):
            raise PermissionError  # it was allowed before
        session.find_once_runners(self.stack_times.of_waits)
        self._at = session.sampled_at
        self._waits = session.waits
        before = watched.scanned_at or self._begun
        watched.scanned_at = self._at
        living = {sample.kernel_tid for sample in session.samples.values()}
        watched.tasks.keep_only(living)
        session.stacks.keep_only(living)
        self._stacks = self._stacks_of_waits()
        self.draft = self._new_draft(self._at - before)

    def _new_draft(self, interval_s: float) -> Draft:
        session, watched = self._session, self.watched
        untold = tuple(sorted(
            tid for tid, wait in self._waits.items() if wait.what.kind is Kind.FUTEX
        ))  # fmt: skip
        main = session.samples.get(watched.target.own_pid)
        notes = [
            f"sampled from outside: {self._without_library}",
            _NOTE.format(every=1000 * interval_s / max(session.taken, 1)),
            *([_UNTOLD] if untold else ()),
            *discover.notes(watched.target),
            *session.resolver.notes(),
            *session.python.notes(),
        ]
        session.taken = 0
        return Draft(
            taken_at=iso(time.time()),
            host=watched.host,
            source="proc",
            duration_s=self._at - self._begun,
            interval_s=interval_s,
            process=watched.figures.scan(main.name if main else watched.target.comm),
            threads=(),
            locks=(),
            unobserved_waiters=untold,
            level="sampled",
            notes=tuple(notes),
        )

    # ---- threads, locks, deadlocks ----

    def build_threads(self) -> None:
        """Fill in the threads: their waits, holds and times."""
        session, draft = self._session, self.draft
        draft.threads = session.builder.threads(
            session.samples, self._waits, self._stacks, self._at, draft.interval_s
        )

    def build_locks(self) -> None:
        """Fill in the locks that samples met somebody waiting for."""
        draft = self.draft
        draft.locks = self._session.builder.locks(self._waits, self._at, draft.interval_s)

    def check_deadlocks(self) -> None:
        """Fill in the deadlocks that this sample and the next one show.

        A thread that was on no CPU in between did nothing. Whether it waits yet, or was let go and
        waits for a CPU, the kernel is asked in between.
        """
        if not self._may_be_stuck():
            return
        session, draft = self._session, self.draft
        by_id = {lock.id: lock for lock in draft.locks}

        def read_again(_: WaitForGraph) -> WaitForGraph:
            session.sample()
            again = session.builder.threads(
                session.samples,
                session.waits,
                self._stacks,
                session.sampled_at,
                draft.interval_s,
                again=True,
            )
            return build_graph(again, by_id)

        first = build_graph(draft.threads, by_id)
        draft.deadlocks = deadlock_check.check(first, self._ask_kernel, read_again)

    def _ask_kernel(
        self, suspects: WaitForGraph, _: Sequence[Deadlock]
    ) -> tuple[WaitForGraph, Set[int]]:
        """See deadlock_check.AskKernel."""
        asleep = {tid for tid, one in suspects.blocked.items() if one.must_be_asleep}
        states = self.watched.tasks.states(asleep | suspects.ended)
        awake = {tid for tid in asleep if states[tid] != "S"}
        awake |= {tid for tid in suspects.ended if states[tid]}
        return suspects, awake

    def _may_be_stuck(self) -> bool:
        """Whether somebody waits for a thread that waits too or is no more, or at a barrier.

        Without that nothing that samples can show is a deadlock, and no more is worked out.
        """
        waits, living = self._waits, self._session.samples
        for wait in waits.values():
            by = wait.what.owner or wait.what.awaits
            if wait.what.kind is Kind.BARRIER or (by and (by in waits or by not in living)):
                return True
        return False

    # ---- stacks ----

    def _stacks_of_waits(self) -> dict[int, int]:
        """Return the stacks of waits by tid. There may not be time for all new ones.

        The longest waits come first: they are asked for once. Of these contention comes first, and
        of that one waiter of each lock.
        """
        session = self._session
        found: dict[int, int] = {}
        new: list[tuple[ObjectWait, Sample, SystemCall]] = []
        for tid, wait in self._waits.items():
            sample, untold = session.samples[tid], wait.what.kind is Kind.FUTEX
            stack = session.stacks.known(sample.kernel_tid, wait.seq, untold)
            if stack:
                found[tid] = stack
            else:
                assert sample.call is not None, "it waits"
                new.append((wait, sample, sample.call))
        if not new:
            return found
        others = Counter(self._waits[tid].what.address for tid in found)
        order = []
        for at, (wait, _, _) in enumerate(new):
            what = wait.what
            order.append((wait.since, what.kind not in CONTENTION_KINDS, others[what.address], at))
            others[what.address] += 1
        order.sort()
        session.stacks.begin(self.stack_times.of_waits)
        found |= self.new_stacks([new[at] for since, _, _, at in order if since < self._at])
        session.stacks.end_within(self.stack_times.of_new_waits)
        return found | self.new_stacks([new[at] for since, _, _, at in order if since >= self._at])

    def new_stacks(self, waits: Sequence[tuple[ObjectWait, Sample, SystemCall]]) -> dict[int, int]:
        """Return the stacks of these waits by tid, as many as there is time for."""
        session = self._session
        found: dict[int, int] = {}
        for at in range(0, len(waits), _STACKS_AT_ONCE):
            if not session.stacks.has_time:
                break
            some = waits[at : at + _STACKS_AT_ONCE]
            session.stacks.expect(call for _, _, call in some)
            still_asleep = session.sampler.asleep(sample for _, sample, _ in some)
            for wait, sample, call in some:
                if sample.kernel_tid not in still_asleep:
                    continue
                asleep = call, partial(session.sampler.still_sleeps, sample)
                untold = wait.what.kind is Kind.FUTEX
                stack = session.stacks.of(sample.kernel_tid, wait.seq, untold, asleep)
                if stack:
                    found[wait.tid] = stack
        return found

    # ---- names ----

    def merge_python_stacks(self) -> None:
        """Fill in Python's functions where they are known."""
        python = self.probes.python
        python.merge(self.draft, self.waits_now() if python.runs_in(self.draft.stacks) else {})
        if python.learned:  # of a wait that may be over by the next scan
            self.rename_locks()
        else:
            self._give_locks_their_waiters_stacks()

    def wait_for_names(self, patience_s: float) -> None:
        """Wait for the names of functions, then fill them in; locks follow."""
        self.probes.resolver.wait(patience_s)
        self.draft.stacks = {stack: self.frames(stack) for stack in self.draft.stacks}

    def rename_locks(self) -> None:
        """See Scan."""
        self._give_locks_their_waiters_stacks()
        names = {
            lock.id: lock.name
            for lock in self._session.builder.locks(self._waits, self._at, self.draft.interval_s)
        }
        self.draft.locks = builder.with_names(self.draft.locks, names)

    def _give_locks_their_waiters_stacks(self) -> None:
        """Where Python's functions are in some stacks, locks have the same as their waiters."""
        if self.probes.python.has_merged:
            self.draft.locks = builder.with_stacks_of(self.draft.locks, self.draft.threads)

    def waits_now(self) -> Waits:
        """See Scan."""
        return waits_of(self.watched.followed_thread.sleeps, self._session.numbered_waits())

    def read_waits_again(self) -> Waits:
        """See Scan."""
        try:
            self._session.sample()
        except OSError:
            return {}  # what follows says that the process has ended
        sleeps = self.watched.followed_thread.still_asleep()
        return waits_of(sleeps, self._session.numbered_waits())
