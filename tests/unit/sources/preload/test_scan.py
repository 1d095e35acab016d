"""One scan over a file made by hand: notes, deadlocks, orders, events and misuses."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest
from support.shared_file import SharedFile, key, mark, record, scan
from unit.builders import records
from unit.builders.raw_threads import futex_wait
from unit.builders.waits import wait

from locktop.collector.errors import LocktopError
from locktop.collector.linux import procfs, ptrace_access
from locktop.collector.linux.syscalls import SystemCall
from locktop.collector.linux.threads import KernelThreads, ThreadMoment
from locktop.collector.model import Held, Kind, MisuseKind, Snapshot, ThreadState, Wait
from locktop.collector.native import lib
from locktop.collector.sources.attach import attach
from locktop.collector.sources.preload.peer_processes import PeerProcesses
from locktop.collector.symbols.resolver import Resolver

MUTEXES = tuple(key(lib.LT_KIND_MUTEX, address) for address in (0x1000, 0x2000))
SECOND = 1_000_000_000
PEER = 4711  # process and thread
NOT_FUTEX = SystemCall(0, (0,) * 6, 0, 0)


# ---- notes ----


def notes(file: SharedFile, directory: Path) -> str:
    return "\n".join(scan(file, directory).notes)


@pytest.mark.parametrize(
    ("bits", "says", "hides"),
    [
        (0, "", "shared memory is full"),
        (lib.LT_NOTE_NO_ROOM, "shared memory is full", "confined"),
        (lib.LT_NOTE_CONFINED, "confined itself", "shared memory is full"),
        (lib.LT_NOTE_CONFINED | lib.LT_NOTE_NO_ROOM, "confined itself", "shared memory is full"),
        (lib.LT_NOTE_NO_CLOCK, "gave up the clock", "confined"),
        (lib.LT_NOTE_LOCKS_FOLDED, 'counted as "other locks"', "gave up the clock"),
    ],
)
def test_notes_of_the_library_are_passed_on(
    directory: Path, bits: int, says: str, hides: str
) -> None:
    file = SharedFile()
    file.header.notes = bits
    text = notes(file, directory)
    assert says in text
    assert hides not in text


@pytest.mark.parametrize(
    ("count", "bits", "says"),
    [(3, 0, "3 threads"), (0, lib.LT_NOTE_NO_THREAD_BLOCK, "1 threads"), (0, 0, "")],
)
def test_unwatched_threads_are_counted(directory: Path, count: int, bits: int, says: str) -> None:
    file = SharedFile()
    file.header.threads_unwatched, file.header.notes = count, bits
    text = notes(file, directory)
    assert (f"{says} run unwatched" in text) is bool(says)
    assert ("run unwatched" in text) is bool(says)


@pytest.mark.parametrize("moving", [0, 1])
def test_a_reading_that_threads_ended_in_says_so(directory: Path, moving: int) -> None:
    file = SharedFile()
    file.header.retire_seq = moving
    assert ("threads ended during the reading" in notes(file, directory)) is bool(moving)


def test_a_file_that_was_cut_off_is_an_error(directory: Path) -> None:
    file = SharedFile()
    file.header.limit = len(file.data) + 1
    with pytest.raises(LocktopError, match=f"{len(file.data)} bytes are left of"):
        scan(file, directory)


# ---- the draft ----


def test_the_interval_is_the_time_since_the_last_scan(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = SharedFile()
    file.header.clock0_ticks = time.monotonic_ns() - 100 * SECOND
    file.save(directory)
    with closing(attach(file.pid)) as source:
        first = source.scan()
        now = time.monotonic()
        second = source.scan()
        passed_s = time.monotonic() - now
    assert (first.interval_s, first.locks_left_out) == (0.0, 0)
    assert 0.0 < second.interval_s < passed_s + 60.0
    assert first.duration_s == pytest.approx(100, abs=50)
    assert not first.stopped
    assert first.source == "preload"


def test_the_files_of_threads_may_be_closed_to_locktop(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError

    file = SharedFile()
    file.hold(file.add_thread(os.getpid()), file.add_lock(lib.LT_KIND_MUTEX, 0x1000), MUTEXES[0])
    monkeypatch.setattr(KernelThreads, "read", refuse)
    found = scan(file, directory)
    assert [thread.alive for thread in found.threads] == [False]
    assert found.misuses == ()  # no thread is known to be gone


# ---- deadlocks ----


class Ring:
    """Two threads that each hold the mutex which the other one waits for."""

    def __init__(self, tids: tuple[int, int]) -> None:
        self.file = file = SharedFile()
        self.tids = tids
        self.locks = [file.add_lock(lib.LT_KIND_MUTEX, at) for at in (0x1000, 0x2000)]
        self.blocks = [file.add_thread(tid) for tid in tids]
        for n, block in enumerate(self.blocks):
            file.hold(block, self.locks[n], MUTEXES[n])
            file.wait(block, self.locks[1 - n], MUTEXES[1 - n], since=time.monotonic_ns() - SECOND)


@pytest.fixture
def ring(second_tid: int, monkeypatch: pytest.MonkeyPatch) -> Ring:
    """A ring of threads that the kernel shows asleep in a futex."""
    moments(monkeypatch)
    return Ring((os.getpid(), second_tid))


def moments(
    monkeypatch: pytest.MonkeyPatch, state: str = "S", call: SystemCall | None = None
) -> None:
    moment = ThreadMoment(state, call or futex_wait(0x1000), (1, 1, 1))

    def moments_of(_: KernelThreads, tids: Iterable[int]) -> dict[int, ThreadMoment]:
        return dict.fromkeys(tids, moment)

    monkeypatch.setattr(KernelThreads, "moments", moments_of)


def test_sleeping_threads_in_a_ring_are_a_certain_deadlock(ring: Ring, directory: Path) -> None:
    (found,) = scan(ring.file, directory).deadlocks
    assert found.certain
    assert {edge.tid for edge in found.cycle} == set(ring.tids)


def test_a_lock_that_changes_owners_without_a_release_makes_it_possible(
    ring: Ring, directory: Path
) -> None:
    ring.file.add_lock(lib.LT_KIND_MUTEX, 0x3000, foreign_releases=1)
    (found,) = scan(ring.file, directory).deadlocks
    assert not found.certain
    assert found.doubt


@pytest.mark.parametrize(
    ("state", "call", "count"),
    [
        ("S", NOT_FUTEX, 0),
        ("S", SystemCall(-1, (), 0, 0), 1),  # no call is known
        ("S", futex_wait(5), 1),
    ],
)
def test_a_thread_that_left_its_wait_by_a_jump_is_in_no_deadlock(
    ring: Ring,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    state: str,
    call: SystemCall,
    count: int,
) -> None:
    moments(monkeypatch, state, call)
    assert len(scan(ring.file, directory).deadlocks) == count


def test_a_deadlock_that_a_second_reading_does_not_show_is_none(
    ring: Ring, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = ring.file.save(directory)

    def moments_of(_: KernelThreads, tids: Iterable[int]) -> dict[int, ThreadMoment]:
        ring.blocks[0].wait.seq = 4
        path.write_bytes(ring.file.data)
        return dict.fromkeys(tids, ThreadMoment("S", futex_wait(0x1000), (1, 1, 1)))

    monkeypatch.setattr(KernelThreads, "moments", moments_of)
    with closing(attach(os.getpid())) as source:
        assert source.scan().deadlocks == ()
        assert source.scan().deadlocks != ()


class Orphan:
    """A thread that waits for the mutex of an owner that has ended."""

    def __init__(self) -> None:
        self.file = file = SharedFile()
        lock = file.add_lock(lib.LT_KIND_MUTEX, 0x1000)
        block = file.add_thread(os.getpid())
        since = time.monotonic_ns() - 100 * SECOND
        file.wait(block, lock, MUTEXES[0], since=since, holder=1 << 30)


@pytest.mark.parametrize(("state", "count"), [("S", 1), ("R", 0)])
def test_only_a_sleeper_waits_for_an_owner_that_has_ended(
    directory: Path, monkeypatch: pytest.MonkeyPatch, state: str, count: int
) -> None:
    moments(monkeypatch, state)
    assert len(scan(Orphan().file, directory).deadlocks) == count


def test_an_owner_that_the_kernel_still_shows_has_not_ended(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments(monkeypatch)
    monkeypatch.setattr(KernelThreads, "states", lambda _, tids: dict.fromkeys(tids, "S"))
    assert scan(Orphan().file, directory).deadlocks == ()


def test_without_descriptors_no_thread_is_known_to_sleep(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(KernelThreads, "moments", refuse)
    assert scan(Orphan().file, directory).deadlocks == ()


# ---- orders, events, misuses ----


@pytest.mark.parametrize("bits", [0, lib.LT_NOTE_ORDERS_LEFT_OUT])
def test_opposite_orders_are_a_potential_deadlock(directory: Path, bits: int) -> None:
    file = SharedFile()
    file.add_thread(os.getpid())
    one, other = (file.add_lock(lib.LT_KIND_MUTEX, at) for at in (0x1000, 0x2000))
    for birth, held, lock in ((1, one, other), (2, other, one)):
        file.add_life(birth, 100 + birth)
        flags = lib.LT_ORDER_KNOWN * 0x1FF
        file.add_order([held], lock, seen=birth << 32, flags=flags)
    file.header.notes = bits
    found = scan(file, directory)
    assert len(found.lock_order) == 1
    assert {lock.id for lock in found.locks} == {one, other}
    assert found.lock_orders_left_out is bool(bits)
    assert (found.lock_order_unproven, found.lock_order_search_cut) == (0, False)


def test_events_and_marks_of_the_ring_are_listed(directory: Path) -> None:
    file = SharedFile()
    lock = file.add_lock(lib.LT_KIND_MUTEX, 0x1000)
    start = time.monotonic_ns() - 10 * SECOND
    unknown = record(tid=os.getpid(), lock=lock, start=start, wait=1, kind=99)
    file.give_ring(
        file.add_thread(os.getpid()),
        8,
        [record(tid=os.getpid(), lock=lock, start=start, wait=SECOND), unknown,
         mark(os.getpid(), start, b"phase two")],
    )  # fmt: skip
    found = scan(file, directory)
    (event,) = found.events
    assert (event.lock, event.kind, event.wait_s) == (lock, Kind.MUTEX, 1.0)
    assert event.ago_s == pytest.approx(10, abs=5)
    (one,) = found.marks
    assert (one.text, one.ago_s) == ("phase two", pytest.approx(10, abs=5))
    assert found.lost_events == 0


def test_misuses_of_all_sources_are_listed(directory: Path) -> None:
    file = SharedFile()
    lock = file.add_lock(lib.LT_KIND_MUTEX, 0x1000)
    file.add_misuse(kind=lib.LT_MISUSE_RELEASED_FREE, lock=lock, count=1, tid=5)
    file.hold(file.add_thread(1 << 30), lock, MUTEXES[0])
    found = scan(file, directory)
    kinds = {misuse.kind for misuse in found.misuses}
    assert kinds == {MisuseKind.RELEASED_FREE, MisuseKind.KEPT_AT_END}
    assert [one.id for one in found.locks] == [lock]


def test_a_misused_lock_without_figures_has_a_row(directory: Path) -> None:
    file = SharedFile()
    file.add_thread(os.getpid())
    lock = file.add_lock(lib.LT_KIND_MUTEX, 0x1000)
    file.add_misuse(kind=lib.LT_MISUSE_RELEASED_FREE, lock=lock, count=1)
    assert [one.id for one in scan(file, directory).locks] == [lock]


# ---- waits that the library does not observe ----


@pytest.mark.parametrize("has_block", [False, True])
def test_a_sleeper_without_an_observed_wait_has_the_wait_that_memory_shows(
    directory: Path, second_tid: int, has_block: bool
) -> None:
    """The second thread of the tests waits for a semaphore of Python."""
    file = SharedFile()
    if has_block:
        file.add_thread(second_tid)
    file.save(directory)
    with closing(attach(file.pid)) as source:
        first = source.scan()
        found = source.scan()
    for snapshot in (first, found):
        wait = waits_of(snapshot)[second_tid]
        (lock,) = (lock for lock in snapshot.locks if lock.id == wait.lock)
        assert (wait.kind, lock.kind, second_tid in lock.waiters) == (Kind.SEM, Kind.SEM, True)
        assert snapshot.unobserved_waiters == snapshot.unobserved_waits == ()
    assert not waits_of(first)[second_tid].stack  # the first picture does not wait for stacks
    assert waits_of(found)[second_tid].stack


def test_a_scan_with_all_names_has_all_details_at_once(directory: Path, second_tid: int) -> None:
    file = SharedFile()
    file.save(directory)
    with closing(attach(file.pid)) as source:
        found = source.scan(resolve=True)
    assert waits_of(found)[second_tid].stack


def waits_of(snapshot: Snapshot) -> dict[int, Wait]:
    return {one.tid: one.waiting_for for one in snapshot.threads if one.waiting_for is not None}


# ---- a semaphore as a lock ----


def uses_as_lock(file: SharedFile, holder: int, waiter: int, generation: int = 0) -> int:
    """Add a semaphore that one thread has taken and another one waits for; return its id."""
    sem = key(lib.LT_KIND_SEM, 0x3000)
    lock = file.add_lock(lib.LT_KIND_SEM, 0x3000, type=2, generation=generation)
    for tid, taken, posted in ((waiter, 50, 50), (holder, 101, 100)):
        block = file.add_thread(tid)
        file.give_slots(
            block, 4, [{"key": sem, "lock": lock, "acquisitions": taken, "signals": posted}]
        )
        if tid == waiter:
            file.wait(block, lock, sem, since=time.monotonic_ns() - SECOND)
    return lock


def test_the_owner_of_a_semaphore_that_is_used_as_a_lock_is_known(
    directory: Path, second_tid: int
) -> None:
    file = SharedFile()
    lock = uses_as_lock(file, os.getpid(), second_tid)
    found: Snapshot = scan(file, directory)
    assert {one.id: one.holders for one in found.locks} == {lock: (os.getpid(),)}


@pytest.mark.parametrize(("life", "holders"), [(1, 1), (0, 0)])
def test_only_counts_of_the_present_life_show_that_a_semaphore_is_a_lock(
    directory: Path, second_tid: int, life: int, holders: int
) -> None:
    file = SharedFile()
    lock = uses_as_lock(file, os.getpid(), second_tid, generation=1)
    for block in file.blocks:
        file.counters(block).counts.life = life << 1
    (found,) = scan(file, directory).locks
    assert (found.id, len(found.holders)) == (lock, holders)


# ---- the end ----


def ended(file: SharedFile, directory: Path, monkeypatch: pytest.MonkeyPatch) -> Snapshot:
    """Return the first scan after the end, of a process that was scanned before."""

    def gone(_: int) -> None:
        raise FileNotFoundError

    file.save(directory)
    with closing(attach(file.pid)) as source:
        source.scan()
        monkeypatch.setattr(procfs, "stat", gone)
        found = source.scan()
        assert source.scan() is found
        assert source.waits() is None
        return found


@pytest.mark.parametrize("state", [lib.LT_RUNNING, lib.LT_EXITED])
def test_the_last_scan_has_the_final_figures(
    directory: Path,
    second_tid: int,
    monkeypatch: pytest.MonkeyPatch,
    state: int,
) -> None:
    moments(monkeypatch)
    ring = Ring((os.getpid(), second_tid))
    ring.file.header.state = state
    found = ended(ring.file, directory, monkeypatch)
    assert found.ended
    assert not any(thread.alive for thread in found.threads)
    assert all(bool(thread.holds) is (state == lib.LT_RUNNING) for thread in found.threads)
    assert (found.unobserved_waiters, len(found.deadlocks)) == ((), 1)
    assert found.deadlocks[0].certain


def test_a_thread_of_another_process_may_close_a_ring(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments(monkeypatch)
    file = SharedFile()
    held, wanted = (file.add_lock(lib.LT_KIND_MUTEX, at) for at in (0x1000, 0x2000))
    block = file.add_thread(os.getpid())
    file.hold(block, held, MUTEXES[0])
    since = time.monotonic_ns() - SECOND
    file.wait(block, wanted, MUTEXES[1], since=since, holder=PEER)
    peer = records.thread(
        PEER,
        "",
        ThreadState.OTHER,
        pid=PEER,
        waiting_for=wait(lock=held),
        holds=(Held(wanted, 0, None),),
    )
    monkeypatch.setattr(PeerProcesses, "threads", lambda *_: (peer,))
    (found,) = scan(file, directory).deadlocks
    assert found.certain
    assert {edge.tid: edge.pid for edge in found.cycle} == {os.getpid(): 0, PEER: PEER}


@pytest.mark.parametrize(("state", "count"), [("S", 1), ("R", 0)])
def test_a_deadlock_of_sleepers_lasts_to_the_end_if_a_scan_confirmed_it(
    directory: Path, monkeypatch: pytest.MonkeyPatch, state: str, count: int
) -> None:
    moments(monkeypatch, state)
    assert len(ended(Orphan().file, directory, monkeypatch).deadlocks) == count


def test_times_after_the_end_are_those_of_the_last_sign_of_life(
    directory: Path, second_tid: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = SharedFile()
    lock = file.add_lock(lib.LT_KIND_MUTEX, 0x1000)
    start = time.monotonic_ns() - 100 * SECOND
    file.header.clock0_ticks = start
    file.wait(file.add_thread(os.getpid()), lock, MUTEXES[0], since=start + SECOND)
    found = ended(file, directory, monkeypatch)
    assert found.threads[0].waiting_for is not None
    waited_s = found.threads[0].waiting_for.duration_s
    assert found.duration_s == pytest.approx(waited_s + 1.0)
    assert waited_s > 90.0


def test_only_a_living_process_keeps_something_from_locktop(
    directory: Path, second_tid: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ptrace_access, "lost_insight", lambda *_: "locktop may not look")
    file = SharedFile()
    file.add_thread(os.getpid())
    assert "locktop may not look" in scan(file, directory).notes
    assert "locktop may not look" not in ended(file, directory, monkeypatch).notes


def test_names_are_read_anew_after_the_program_unloaded_a_library(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    monkeypatch.setattr(Resolver, "reread", lambda _: calls.append(1))
    file = SharedFile()
    path = file.save(directory)
    with closing(attach(file.pid)) as source:
        source.scan()
        assert calls == []
        file.header.unloads += 1
        path.write_bytes(file.data)
        source.scan()
        source.scan()
        assert calls == [1]
