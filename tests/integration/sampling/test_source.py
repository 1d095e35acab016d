"""The sampling source: each finding about a program without the library is true."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from itertools import pairwise
from pathlib import Path

import pytest
from integration.deadlock.test_verdict_table import CERTAIN, SILENT, Cycle, Program
from support import tool
from support.screen import Screen
from support.targets import PATIENCE_S, Compiler, StartTarget, Target

from locktop.collector.linux import procfs
from locktop.collector.linux.syscalls import SystemCall
from locktop.collector.model import CONTENTION_KINDS, ActivityState, Kind, Snapshot, ThreadState
from locktop.collector.render.text.report import render
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source
from locktop.collector.sources.sampling.cpu_budget import CpuBudget
from locktop.collector.sources.sampling.sampled_wait import SampledWait
from locktop.collector.sources.sampling.sampler import Sample, Sampler
from locktop.collector.sources.sampling.scan import SamplingScan
from locktop.collector.sources.sampling.source import SamplingSource

#: The deadlocks of the table that sampling finds.
FOUND = (
    "two mutexes",
    "two mutexes, one taken by trylock",
    "a ring of five",
    "two rings",
    "a mutex taken again",
    "a mutex taken again, with priority inheritance",
    "two writers",
    "the end of one who wants the lock",
    "three that join each other",
    "the main thread",
    "two mutexes, when the main thread has ended",
    "a barrier that one cannot reach",
    "a barrier for more than there are",
    "threads behind a deadlock",
    "a mutex of a thread that ended",
    "a mutex of a thread that ends during the wait",
    "a chain of waits for a thread that ended",
    "a routine that runs once",
    "a routine that wants a lock",
    "a routine that runs itself",
)
#: The kind of lock for each last step of a thread in the table.
KINDS = {
    "lock": Kind.MUTEX,
    "timedlock": Kind.MUTEX,
    "read": Kind.RWLOCK,
    "timedread": Kind.RWLOCK,
    "write": Kind.RWLOCK,
    "timedwrite": Kind.RWLOCK,
    "get": Kind.SEM,
    "timedget": Kind.SEM,
    "wait": Kind.COND,
    "timedwait": Kind.COND,
    "arrive": Kind.BARRIER,
    "join": Kind.JOIN,
    "timedjoin": Kind.JOIN,
    "once": Kind.ONCE,
}


class Unprepared:
    """A program of the table, without the library."""

    def __init__(self, compiler: Compiler, program: Program) -> None:
        if os.geteuid() != 0 and program.scripts[0] == "exit":
            pytest.skip("only root may read a process without its main thread")
        self.program = program
        self.target = Target([compiler.program("scripted_threads"), *program.arguments])
        self._tids: list[int] = []

    def settled(self) -> Snapshot:
        """Scan until all waiters of the program wait; return one more scan."""
        tids = self.tids
        wanted = {tids[number] for number in self.program.waiters()}
        deadline = time.monotonic() + PATIENCE_S
        with closing(attach(self.target.pid)) as source:
            while True:
                seen = source.scan()
                if wanted <= {thread.tid for thread in seen.threads if thread.waiting_for}:
                    return source.scan(resolve=True)
                assert time.monotonic() < deadline, "the threads do not wait"

    @property
    def tids(self) -> list[int]:
        if not self._tids:
            self._tids = [int(tid) for tid in self.target.truth()["tids"]]
        return self._tids

    def cycles(self, seen: Snapshot) -> list[Cycle]:
        number = {tid: number for number, tid in enumerate(self.tids)} | {0: -1}
        return [
            {(number[edge.tid], str(edge.reason), number[edge.held_by]) for edge in found.cycle}
            for found in seen.deadlocks
            if found.certain
        ]


@pytest.fixture(scope="module")
def unprepared(compiler: Compiler) -> Iterator[Callable[[Program], Unprepared]]:
    with ExitStack() as stack:

        def start(program: Program) -> Unprepared:
            found = Unprepared(compiler, program)
            stack.callback(found.target.stop)
            return found

        yield start


def check_kinds(running: Unprepared, seen: Snapshot) -> None:
    """Check that the kind of each wait is that of the thread's last step."""
    waits = {thread.tid: thread.waiting_for for thread in seen.threads}
    for number in running.program.waiters():
        step = running.program.scripts[number].rpartition(", ")[2].partition(" ")[0]
        wait = waits[running.tids[number]]
        assert wait is not None
        if step != "spin":
            assert wait.kind is KINDS[step], running.program.scripts[number]


@pytest.mark.parametrize("name", FOUND)
def test_sampling_finds_a_deadlock(name: str, unprepared: Callable[[Program], Unprepared]) -> None:
    running = unprepared(CERTAIN[name].program)
    seen = running.settled()
    check_kinds(running, seen)
    assert seen.source == "proc"
    (cycle,) = running.cycles(seen)
    reasons = {(reason, provider) for _, reason, provider in cycle}
    assert reasons == {(reason, provider) for _, reason, provider in CERTAIN[name].cycle}


@pytest.mark.parametrize("name", CERTAIN.keys() - set(FOUND))
def test_sampling_reports_no_certain_deadlock_without_known_holders(
    name: str, unprepared: Callable[[Program], Unprepared]
) -> None:
    running = unprepared(CERTAIN[name].program)
    seen = running.settled()
    check_kinds(running, seen)
    assert running.cycles(seen) == []


@pytest.mark.parametrize("name", CERTAIN)
def test_sampling_does_not_report_a_near_miss(
    name: str, unprepared: Callable[[Program], Unprepared]
) -> None:
    running = unprepared(CERTAIN[name].near_miss)
    assert running.settled().deadlocks == ()


@pytest.mark.parametrize("name", SILENT)
def test_sampling_does_not_report_waits_without_a_deadlock(
    name: str, unprepared: Callable[[Program], Unprepared]
) -> None:
    running = unprepared(SILENT[name])
    assert running.settled().deadlocks == ()


def test_a_sampled_mutex_has_its_holder_and_its_name(start_unprepared: StartTarget) -> None:
    target = start_unprepared("ring_of_three")
    target.expect("ready")
    target.go_on()
    tids = target.truth()
    with closing(attach(target.pid)) as source:
        seen = until(source, lambda seen: bool(seen.deadlocks))
    names = {lock.id: lock.name for lock in seen.locks}
    waits = {thread.tid: thread.waiting_for for thread in seen.threads}
    wait = waits[tids["alice"]]
    assert wait is not None
    assert (names[wait.lock], wait.holders) == ("g_beta_lock", (tids["bob"],))
    held = {thread.tid: [names[held.lock] for held in thread.holds] for thread in seen.threads}
    assert held[tids["bob"]] == ["g_beta_lock"]
    done = tool.run("check", "-p", target.pid)
    assert done.returncode == 1, done.stdout
    assert "g_beta_lock" in done.stdout


def test_wait_times_are_right_within_their_error(start_unprepared: StartTarget) -> None:
    target = start_unprepared("hold_100ms", "at_line")
    target.expect("ready")
    with closing(attach(target.pid)) as source:
        target.go_on()
        truth = target.truth()
        target.go_on()
        target.expect("held")
        seen = source.scan(resolve=True)
        (lock,) = (lock for lock in seen.locks if lock.name == "g_slow_lock")
        (holder,) = lock.holders
    going_on = sum(
        wait.duration_s for thread in seen.threads if (wait := thread.waiting_for) and not wait.idle
    )
    assert holder == truth["holder"]
    assert lock.wait_error_s > 0
    # The truth has only the waits before its line, so the waits that still last do not count.
    off_s = lock.wait_s - going_on - truth["wait_s"]
    slack_s = 5 * lock.wait_error_s + 0.2
    assert abs(off_s) < slack_s
    # On a busy machine the samples are far apart, and the comparison proves nothing.
    if truth["wait_s"] < 2 * slack_s:
        pytest.skip(f"the samples were too few: {slack_s:.1f} s of {truth['wait_s']:.1f} s")
    (most,) = (blame for blame in lock.blame[:1])
    assert most.tid == holder


def test_figures_that_sampling_cannot_measure_are_null(start_unprepared: StartTarget) -> None:
    target = start_unprepared("ring_of_three")
    target.expect("ready")
    target.go_on()
    target.line()
    document = tool.scan_until(target.pid, lambda seen: bool(seen["deadlocks"]), "the deadlock")
    for lock in document["locks"]:
        assert lock["acquisitions"] is lock["hold_s"] is None
        assert lock["wait_s"] > 0
    page = tool.run("snapshot", "-p", target.pid, "--format", "text").stdout
    assert "sampled, not counted: it runs without the library" in " ".join(page.split())


def test_a_deadlock_from_before_the_first_scan_has_a_lower_bound(
    start_unprepared: StartTarget,
) -> None:
    """The source did not see which wait closed the cycle, nor when."""
    target = start_unprepared("ring_of_three")
    target.expect("ready")
    target.go_on()
    target.line()
    tool.scan_until(target.pid, lambda seen: bool(seen["deadlocks"]), "the deadlock")
    with closing(attach(target.pid)) as source:
        seen = until(source, lambda seen: bool(seen.deadlocks))
    assert all(thread.waiting_for.is_lower_bound for thread in seen.threads if thread.waiting_for)
    page = render(seen, width=200)
    assert "wait for each other, for at least " in page
    assert "(since " not in page
    assert "This thread's wait closed the cycle" not in page


def test_a_deadlock_that_began_between_two_scans_has_its_begin(
    start_unprepared: StartTarget,
) -> None:
    target = start_unprepared("ring_of_three")
    target.expect("ready")
    with closing(attach(target.pid)) as source:
        source.scan()
        target.go_on()
        target.line()
        seen = until(source, lambda seen: bool(seen.deadlocks))
    waits = [thread.waiting_for for thread in seen.threads if thread.waiting_for]
    assert not any(wait.is_lower_bound for wait in waits if wait.holders)
    assert "(since " in render(seen, width=200)


def test_the_activity_of_a_sampled_holder_is_known(start_unprepared: StartTarget) -> None:
    target = start_unprepared("holder_activities", "receives")
    about_to = target.line()
    target.expect("ready")
    with closing(attach(target.pid)) as source:
        seen = until(source, lambda seen: any(lock.holder_activity for lock in seen.locks))
    (now,) = (lock.holder_activity for lock in seen.locks if lock.holder_activity)
    assert (now.doing, now.what) == (ActivityState.BLOCKED, about_to)


def test_the_runner_of_a_once_routine_is_the_holder(start_unprepared: StartTarget) -> None:
    """The program uses pthread_once first, then call_once."""
    target = start_unprepared("once_with_waiters")
    controls = set()
    with closing(attach(target.pid)) as source:
        for _ in range(2):
            runner = target.truth()["runner"]

            def both_known(seen: Snapshot, runner: int = runner) -> bool:
                waits = [thread.waiting_for for thread in seen.threads if thread.waiting_for]
                once = [wait for wait in waits if wait.kind is Kind.ONCE]
                return len(once) == 2 and all(wait.holders == (runner,) for wait in once)

            seen = until(source, both_known)
            assert seen.deadlocks == ()
            (lock,) = (lock for lock in seen.locks if lock.kind is Kind.ONCE and lock.waiters)
            assert lock.holder_activity is not None
            assert lock.holder_activity.call == "read"
            controls.add(lock.name)
            target.go_on()
            target.expect("done")
            target.go_on()
    assert controls == {"g_once", "g_flag"}
    assert target.finish() == (0, ["ok"])


def test_the_child_of_a_fork_in_a_once_routine_is_not_its_runner(
    start_unprepared: StartTarget,
) -> None:
    """The stack of the child's thread looks like that of a runner."""
    target = start_unprepared("once_routine_forks")
    truth = target.truth()

    def is_known(seen: Snapshot) -> bool:
        waits = {thread.tid: thread.waiting_for for thread in seen.threads}
        wait = waits[truth["waiter"]]
        assert wait is None or wait.holders in ((), (truth["runner"],))
        return wait is not None and bool(wait.holders)

    with closing(attach(truth["pid"])) as source:
        until(source, is_known)
    assert target.finish()[0] == 0


def test_each_lasting_wait_gets_a_stack_beside_many_short_waits(
    start_unprepared: StartTarget,
) -> None:
    """Each scan reads few stacks, and finds as many new waits."""
    target = start_unprepared("thousand_threads", "500")
    target.expect("ready")

    def all_have_one(snapshot: Snapshot) -> bool:
        stacks = [
            wait.stack
            for thread in snapshot.threads
            if (wait := thread.waiting_for) and wait.kind is Kind.COND
        ]
        return len(stacks) > 200 and all(stacks)

    with closing(attach(target.pid)) as source:
        deadline = time.monotonic() + PATIENCE_S
        while not all_have_one(source.scan()):
            assert time.monotonic() < deadline
            time.sleep(0.1)  # lets the other threads come to new waits


def test_waits_for_locks_with_few_known_stacks_get_their_stacks_first(
    start_unprepared: StartTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order holds among new waits. Idle waits come last."""
    begun: list[tuple[Counter[int], list[SampledWait]]] = []  # with all that wait, by address
    new_stacks = SamplingScan.new_stacks

    def noted(
        scan: SamplingScan, new: Sequence[tuple[SampledWait, Sample, SystemCall]]
    ) -> dict[int, int]:
        waits = [wait for wait, _, _ in new]
        assert [wait.since for wait in waits] == sorted(wait.since for wait in waits)
        session = scan.session
        if waits and waits[0].since >= session.sampled_at:
            all_waits = Counter(wait.sync_object.address for wait in session.waits.values())
            begun.append((all_waits, waits))
        return new_stacks(scan, new)

    monkeypatch.setattr(SamplingScan, "new_stacks", noted)
    target = start_unprepared("thousand_threads", "500")
    target.expect("ready")
    several = 0
    with closing(SamplingSource(target.pid)) as source:
        deadline = time.monotonic() + PATIENCE_S
        while several < 5:
            assert time.monotonic() < deadline
            source.scan()
            time.sleep(0.1)  # lets the threads come to new waits
            while begun:
                all_waits, waits = begun.pop()
                idle = [wait.sync_object.kind not in CONTENTION_KINDS for wait in waits]
                assert idle == sorted(idle)
                locks = [wait.sync_object.address for wait in waits[: idle.count(False)]]
                others = {lock: all_waits[lock] - locks.count(lock) for lock in locks}
                before = [others[lock] + locks[:at].count(lock) for at, lock in enumerate(locks)]
                assert before == sorted(before)
                several += len(set(before)) > 1


def test_no_sample_is_taken_right_after_a_scan(
    start_unprepared: StartTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a sample would have the same data as the scan."""
    pause_s, taken = 0.05, []
    take = Sampler.take

    def noted(samples: Sampler, count: int = 0) -> Mapping[int, Sample]:
        found = take(samples, count)
        taken.append((samples.sampled_at, threading.current_thread().name == "sampler"))
        return found

    monkeypatch.setattr(Sampler, "take", noted)
    monkeypatch.setattr(CpuBudget, "pause_s", pause_s)
    target = start_unprepared("ring_of_three")
    target.expect("ready")
    with closing(attach(target.pid)) as source:
        deadline = time.monotonic() + PATIENCE_S
        while sum(own for _, own in taken) < 4:
            assert time.monotonic() < deadline
            source.scan()
            time.sleep(pause_s * 1.5)
        for _ in range(8):
            source.scan()
            time.sleep(pause_s / 2)
    first = [own for _, own in taken].index(True)  # its pause began before the change
    pairs = pairwise(taken[first:])
    assert all(at - before >= pause_s for (before, _), (at, own) in pairs if own)


def test_a_stopped_thread_is_not_idle(start_unprepared: StartTarget) -> None:
    """The kernel shows the thread in the system call in which the signal stopped the thread."""
    target = start_unprepared("thousand_threads", "10")
    target.expect("ready")
    with closing(attach(target.pid)) as source:
        source.scan()
        os.kill(target.pid, signal.SIGSTOP)
        try:
            deadline = time.monotonic() + PATIENCE_S
            while {procfs.thread_stat(target.pid, t).state for t in procfs.tids(target.pid)} != {
                "T"
            }:
                assert time.monotonic() < deadline
            assert _states(source.scan()) == {ThreadState.OTHER}
        finally:
            os.kill(target.pid, signal.SIGCONT)
        until(source, lambda seen: ThreadState.IDLE in _states(seen))


def _states(seen: Snapshot) -> set[ThreadState]:
    """Return the states of the threads without a wait."""
    return {thread.state for thread in seen.threads if thread.waiting_for is None}


def test_the_screen_shows_a_sampled_deadlock(
    start_unprepared: StartTarget, need: Callable[[str], Path]
) -> None:
    target = start_unprepared("ring_of_three")
    target.expect("ready")
    target.go_on()
    target.line()
    with Screen(need("tmux"), "-p", target.pid) as screen:
        text = screen.until(lambda text: "g_beta_lock" in text, "the lock")
        text = screen.until(lambda text: "DEADLOCK" in text.upper(), "the deadlock")
        assert "sampled" in text


def until(source: Source, reached: Callable[[Snapshot], bool]) -> Snapshot:
    """Scan until ``reached`` is true of a snapshot; return that one."""
    deadline = time.monotonic() + PATIENCE_S
    while not reached(seen := source.scan(resolve=True)):
        assert time.monotonic() < deadline
    return seen
