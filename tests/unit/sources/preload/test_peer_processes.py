"""Other processes that share locks with the watched one."""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.shared_file import SharedFile, key
from unit.builders import records
from unit.builders.waits import wait

from locktop.collector.linux import procfs
from locktop.collector.linux.target import find_process
from locktop.collector.model import Deadlock, DeadlockEdge, Held, Kind, Lock, Thread, ThreadState
from locktop.collector.native import lib
from locktop.collector.sources import discover
from locktop.collector.sources.preload.peer_processes import PeerProcesses, annotate

#: The watched process is the parent of the tests; its peer is the process of the tests.
WATCHED = os.getppid()
TID = 4711
LOCK, FIRST_ID = 7, 1 << 40


class Shared:
    """Memory of a file that this process maps."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(2 * mmap.PAGESIZE))
        with path.open("r+b") as file:
            self.map = mmap.mmap(file.fileno(), 0)
        line = next(line for line in procfs.maps(os.getpid()).splitlines() if bytes(path) in line)
        self.address = int(line.split(b"-")[0], 16)
        self.maps = line + b"\n7f0000000000-7f0000001000 rw-p 00000000 00:00 0\n"


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Shared]:
    shared = Shared(tmp_path / "shared")
    yield shared
    shared.map.close()


@pytest.fixture
def peers(
    directory: Path, shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PeerProcesses]:
    """The peers of a process that maps the same file; the library is in both."""
    real, library = procfs.maps, discover.LIBRARY

    def maps(pid: int) -> bytes:
        if pid == os.getpid():
            return real(pid) + library
        return shared.maps if pid == WATCHED else b""

    monkeypatch.setattr(procfs, "maps", maps)
    monkeypatch.setattr(procfs, "pids", lambda: [1, WATCHED, os.getpid()])
    found = PeerProcesses(find_process(WATCHED))
    yield found
    found.close()


def waiter(duration_s: float = 2.0, **fields: object) -> Thread:
    """Return a thread of the watched process that waits for the shared lock."""
    values = {"lock": LOCK, "pshared": True, "duration_s": duration_s} | fields
    return replace(
        records.thread(TID, "t", ThreadState.WAITING), waiting_for=replace(wait(), **values)
    )


def locks(address: int, kind: Kind = Kind.MUTEX) -> Mapping[int, Lock]:
    return {LOCK: replace(records.lock(LOCK, "l", kind), address=address)}


def peer_file(directory: Path, *held: int, held_flags: int = 0, **wait_fields: int) -> SharedFile:
    """Write the file of the peer, whose thread holds and waits for locks, by key."""
    file = SharedFile()
    block = file.add_thread(os.getpid())
    file.add_thread(1 << 30)  # a thread that has ended
    for one in held:
        file.hold(block, 0, one, held_flags)
    if wait_fields:
        file.wait(block, 0, wait_fields.pop("key"), **wait_fields)
    file.save(directory)
    return file


def test_a_peer_holds_the_same_lock_at_its_own_address(
    peers: PeerProcesses, directory: Path, shared: Shared
) -> None:
    at = shared.address + 64
    peer_file(directory, key(lib.LT_KIND_MUTEX, at), key(lib.LT_KIND_MUTEX, at + 8))
    (thread,) = peers.threads([waiter()], locks(at))
    assert (thread.tid, thread.pid, thread.alive) == (os.getpid(), os.getpid(), True)
    assert [held.lock for held in thread.holds] == [LOCK, FIRST_ID]
    assert (thread.waiting_for, thread.holds[0].shared) == (None, False)
    (again,) = peers.threads([waiter()], locks(at))
    assert again.holds == thread.holds
    assert not peers.handed_over


def test_the_kind_and_the_offset_in_the_file_make_a_lock(
    peers: PeerProcesses, directory: Path, shared: Shared
) -> None:
    at = shared.address + 64
    keys = (lib.LT_KIND_RWLOCK, at), (lib.LT_KIND_MUTEX, at + 64), (lib.LT_KIND_SEM, at)
    peer_file(directory, *(key(*one) for one in keys), held_flags=lib.LT_HELD_SHARED)
    (thread,) = peers.threads([waiter()], locks(at))
    assert [held.lock for held in thread.holds] == [FIRST_ID, FIRST_ID + 1, FIRST_ID + 2]
    assert all(held.shared for held in thread.holds)
    (thread,) = peers.threads([waiter(kind=Kind.RWLOCK)], locks(at, Kind.RWLOCK))
    assert thread.holds[0].lock == LOCK


def test_a_peer_waits_for_a_lock(peers: PeerProcesses, directory: Path, shared: Shared) -> None:
    at = shared.address
    flags = lib.LT_WAIT_TIMED | lib.LT_WAIT_PSHARED
    since = time.monotonic_ns() - 10_000_000_000
    wanted = key(lib.LT_KIND_MUTEX, at)
    peer_file(directory, key=wanted, since=since, holder=TID, flags=flags)
    (thread,) = peers.threads([waiter()], locks(at))
    found = thread.waiting_for
    assert found is not None
    assert (found.lock, found.kind, found.seq, found.holder_seen) == (LOCK, Kind.MUTEX, 2, TID)
    assert (found.timed, found.shared, found.pshared) == (True, False, True)
    assert found.duration_s == pytest.approx(10, abs=5)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [(lib.LT_WAIT_SHARED, (False, True, False)), (0, (False, False, False))],
)
def test_the_flags_of_a_wait_are_those_of_the_peer(
    peers: PeerProcesses,
    directory: Path,
    shared: Shared,
    flags: int,
    expected: tuple[bool, bool, bool],
) -> None:
    peer_file(directory, key=key(lib.LT_KIND_RWLOCK, shared.address), flags=flags)
    (thread,) = peers.threads([waiter()], locks(shared.address))
    found = thread.waiting_for
    assert found is not None
    assert (found.timed, found.shared, found.pshared) == expected


def test_other_waits_of_a_peer_are_not_known(
    peers: PeerProcesses, directory: Path, shared: Shared
) -> None:
    peer_file(directory, key=key(lib.LT_KIND_COND, shared.address))
    (thread,) = peers.threads([waiter()], locks(shared.address))
    assert thread.waiting_for is None


def test_a_peer_that_hands_locks_over_is_noticed(
    peers: PeerProcesses, directory: Path, shared: Shared
) -> None:
    file = peer_file(directory)
    file.add_lock(lib.LT_KIND_MUTEX, 0x1000, foreign_releases=1)
    file.save(directory)
    peers.threads([waiter()], locks(shared.address))
    assert peers.handed_over


@pytest.mark.parametrize(
    "fields",
    [{"pshared": False}, {"timed": True}, {"kind": Kind.SEM}, {"duration_s": 0.5}],
    ids=str,
)
def test_only_a_lasting_wait_for_a_shared_lock_justifies_a_search(
    peers: PeerProcesses, directory: Path, shared: Shared, fields: dict[str, object]
) -> None:
    peer_file(directory)
    assert peers.threads([waiter(**fields)], locks(shared.address)) == ()  # type: ignore[arg-type]
    assert peers.threads([waiter(0.51)], locks(shared.address))
    assert peers.threads([], locks(shared.address)) == ()


@pytest.mark.parametrize("offset", [-(1 << 20), 2 * mmap.PAGESIZE])
def test_a_lock_beyond_shared_memory_has_no_peers(
    peers: PeerProcesses, directory: Path, shared: Shared, offset: int
) -> None:
    peer_file(directory)
    assert peers.threads([waiter()], locks(shared.address + offset)) == ()


def test_memory_of_one_process_is_not_shared(
    peers: PeerProcesses, directory: Path, shared: Shared
) -> None:
    peer_file(directory)
    assert peers.threads([waiter()], locks(0x7F0000000000)) == ()


def test_a_lock_that_a_thread_holds_counts_too(
    peers: PeerProcesses, directory: Path, shared: Shared
) -> None:
    at = shared.address
    peer_file(directory, key(lib.LT_KIND_MUTEX, at))
    holder = replace(waiter(lock=LOCK + 1), holds=(Held(LOCK, 0, None),))
    (thread,) = peers.threads([holder], locks(at))
    assert [held.lock for held in thread.holds] == [LOCK]


def test_processes_are_searched_for_now_and_then(
    peers: PeerProcesses, directory: Path, shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches: list[int] = []
    real = procfs.pids
    monkeypatch.setattr(procfs, "pids", lambda: searches.append(1) or real())
    start = time.monotonic()
    now = [start]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    peer_file(directory)
    for at_s in (0.0, 10.0, 10.1, 15.0):
        now[0] = start + at_s
        assert peers.threads([waiter()], locks(shared.address))
    assert len(searches) == 2
    peers.threads([], {})  # nobody waits: the next wait begins a new search
    assert peers.threads([waiter()], locks(shared.address))
    assert len(searches) == 3


def test_a_process_without_the_library_is_no_peer(
    peers: PeerProcesses, directory: Path, shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer_file(directory)
    monkeypatch.setattr(discover, "LIBRARY", b"no such library")
    assert peers.threads([waiter()], locks(shared.address)) == ()


def test_a_peer_that_has_ended_is_left_out(
    peers: PeerProcesses, directory: Path, shared: Shared
) -> None:
    file = peer_file(directory)
    assert peers.threads([waiter()], locks(shared.address))
    os.truncate(directory / file.name, 0)
    assert peers.threads([waiter()], locks(shared.address)) == ()


def test_a_watched_process_that_has_ended_has_no_peers(
    peers: PeerProcesses, directory: Path, shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_: int) -> bytes:
        raise FileNotFoundError

    peer_file(directory)
    monkeypatch.setattr(procfs, "maps", gone)
    assert peers.threads([waiter()], locks(shared.address)) == ()


def test_the_processes_of_owners_come_first(
    peers: PeerProcesses, directory: Path, shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer_file(directory)
    queried: list[int] = []
    real = procfs.maps

    def maps(pid: int) -> bytes:
        queried.append(pid)
        return real(pid)

    monkeypatch.setattr(procfs, "maps", maps)
    peers.threads([waiter(holder_seen=os.getpid())], locks(shared.address))
    # The watched process may be the first one.
    assert list(dict.fromkeys(queried)) == list(dict.fromkeys([WATCHED, os.getpid(), 1]))
    queried.clear()
    peers.close()
    peers.threads([waiter(holder_seen=0)], locks(shared.address))
    assert list(dict.fromkeys(queried)) == list(dict.fromkeys([WATCHED, 1, os.getpid()]))


def edge(tid: int) -> DeadlockEdge:
    return DeadlockEdge(tid=tid, waits_for=1, held_by=1, stack=0, site=0)


def test_a_deadlock_names_the_process_of_each_thread() -> None:
    peer = replace(records.thread(20, "p", ThreadState.OTHER), pid=99)
    both = Deadlock(certain=True, since_s=1.0, cycle=(edge(11), edge(20)), stuck=(20, 12))
    (found,) = annotate([both], [peer])
    assert [(one.tid, one.pid) for one in found.cycle] == [(11, 0), (20, 99)]
    assert found.stuck == (12,)


def test_a_deadlock_among_peers_alone_is_not_of_this_process() -> None:
    peer = replace(records.thread(20, "p", ThreadState.OTHER), pid=99)
    among = Deadlock(certain=True, since_s=1.0, cycle=(edge(20),), stuck=())
    assert annotate([among], [peer]) == ()
    assert annotate([replace(among, stuck=(20,))], [peer]) == ()
    (found,) = annotate([replace(among, stuck=(12,))], [peer])
    assert found.stuck == (12,)
