"""Other watched processes that share locks with this one: the holds and waits of their threads.

A lock in shared memory has another address and another id in each process. The lock lies at the
same location of the same file. Thread ids distinguish the threads of all processes only within one
pid namespace. So only processes of locktop's own pid namespace are combined.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from locktop.collector.errors import LocktopError
from locktop.collector.linux import procfs
from locktop.collector.linux.target import Target, find_process
from locktop.collector.model import Deadlock, Held, Kind, Lock, Thread, ThreadState, Wait
from locktop.collector.model.kinds import ACROSS_PROCESSES_KINDS
from locktop.collector.native import lib
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.kinds import KINDS, numbers_of
from locktop.collector.shm.reader import RawThread, Reader
from locktop.collector.sources import discover
from locktop.collector.symbols.memory_map import AddressSpace, parse

_KINDS = {number: KINDS[number] for number in numbers_of(ACROSS_PROCESSES_KINDS)}
_KIND_SHIFT: int = lib.LT_KIND_SHIFT
_ADDRESS: int = (1 << _KIND_SHIFT) - 1
#: Seconds: only a lasting wait justifies a search through all processes, and not in every scan.
_LASTING_S = 0.5
_EVERY_S = 10.0
#: A bound, because servers have hundreds of processes that wait for one lock.
_MAX_PEERS = 8
#: Lock ids from here on are beyond the ids of this process's locks.
_FIRST_ID = 1 << 40


class FileLocation(NamedTuple):
    """The location of a lock in a file, the same in all processes."""

    kind: Kind
    device: str
    inode: int
    offset: int


class PeerProcesses:
    """The peers of one process, kept from scan to scan."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._peers: list[_Peer] = []
        self._found_at = 0.0
        self._ids: dict[object, int] = {}
        self.handed_over = False  # a peer released a lock in a thread that had not acquired it

    def threads(self, own: Sequence[Thread], locks: Mapping[int, Lock]) -> tuple[Thread, ...]:
        """Return the threads of the peers.

        There are none unless one of ``own`` has waited for a while for a lock that processes share.

        Args:
            own: the threads of this process.
            locks: its locks, by id; the same locks get the same ids in the peers' threads.
        """
        shared = [
            thread for thread in own if (wait := thread.waiting_for) is not None and wait.pshared
        ]
        if self._target.own_pid != self._target.pid or not any(map(_waits_for_others, shared)):
            self.close()
            return ()
        try:
            locations = _locations(AddressSpace(parse(procfs.maps(self._target.pid))), own, locks)
        except OSError:
            return ()
        if time.monotonic() - self._found_at > _EVERY_S:
            self.close()
            found_peers = _peers(
                self._target.pid,
                {(location.device, location.inode) for location in locations},
                _owners(own),
            )
            self._peers = list(islice(found_peers, _MAX_PEERS))
            self._found_at = time.monotonic()
        threads: list[Thread] = []
        self.handed_over = False
        for peer in self._peers:
            try:
                threads += peer.threads(locations, self._ids)
                self.handed_over |= peer.handed_over
            except (OSError, LocktopError):
                continue  # the peer has ended
        return tuple(threads)

    def close(self) -> None:
        """Release the peers."""
        for peer in self._peers:
            peer.close()
        self._peers, self._found_at = [], 0.0


def _waits_for_others(thread: Thread) -> bool:
    wait = thread.waiting_for
    return (
        wait is not None
        and wait.pshared
        and not wait.timed
        and wait.kind in ACROSS_PROCESSES_KINDS
        and wait.duration_s > _LASTING_S
    )


def _locations(
    space: AddressSpace, own: Sequence[Thread], locks: Mapping[int, Lock]
) -> dict[FileLocation, int]:
    """Return the locks in shared memory that threads of this process hold or wait for."""
    wanted = {thread.waiting_for.lock for thread in own if thread.waiting_for}
    wanted.update(entry.lock for thread in own for entry in thread.holds)
    ids: dict[FileLocation, int] = {}
    for id_ in wanted & locks.keys():
        location = _location(space, locks[id_].kind, locks[id_].address)
        if location is not None:
            ids[location] = id_
    return ids


def _location(space: AddressSpace, kind: Kind, address: int) -> FileLocation | None:
    mapping = space.find(address)
    if mapping is None or not mapping.shared or not mapping.inode:
        return None
    offset = mapping.offset + address - mapping.start
    return FileLocation(kind=kind, device=mapping.device, inode=mapping.inode, offset=offset)


def _owners(own: Sequence[Thread]) -> set[int]:
    """Return the owners that the waiters for process-shared locks saw."""
    waits = [thread.waiting_for for thread in own if _waits_for_others(thread)]
    return {wait.holder_seen for wait in waits if wait and wait.holder_seen}


def _peers(but: int, files: set[tuple[str, int]], owners: set[int]) -> Iterator[_Peer]:
    """Yield the watched processes that share one of the files, beginning with the owners'
    processes.
    """
    pids = [pid for pid in procfs.pids() if pid != but]
    for pid in sorted(pids, key=lambda pid: not _has_one_of(pid, owners)):
        try:
            maps = procfs.maps(pid)
            if discover.LIBRARY not in maps:
                continue
            space = AddressSpace(parse(maps))
            if any(
                mapping.shared and (mapping.device, mapping.inode) in files
                for mapping in space.mappings
            ):
                yield _Peer(pid, space)
        except (OSError, LocktopError):
            continue  # not visible to locktop, or ended


def _has_one_of(pid: int, tids: set[int]) -> bool:
    return any(os.path.exists(f"/proc/{pid}/task/{tid}") for tid in tids)


def annotate(deadlocks: Iterable[Deadlock], peer_threads: Sequence[Thread]) -> tuple[Deadlock, ...]:
    """Return the deadlocks that block threads of this process, with the process of each thread."""
    pids = {thread.tid: thread.pid for thread in peer_threads}
    kept = []
    for deadlock in deadlocks:
        cycle = tuple([replace(edge, pid=pids.get(edge.tid, 0)) for edge in deadlock.cycle])
        stuck = tuple([tid for tid in deadlock.stuck if tid not in pids])
        if stuck or any(not edge.pid for edge in cycle):
            kept.append(replace(deadlock, cycle=cycle, stuck=stuck))
    return tuple(kept)


class _Peer:
    """One peer process."""

    def __init__(self, pid: int, space: AddressSpace) -> None:
        target = find_process(pid)
        if target.own_pid != pid:
            raise LocktopError(f"process {target} counts its threads otherwise")
        self._pid = pid
        self._space = space
        self._memory = discover.open_memory(target)
        self._clock = Clock(self._memory.header())
        self._reader = Reader(self._memory, self._clock)
        self.handed_over = False

    def close(self) -> None:
        self._memory.close()

    def threads(
        self, locations: Mapping[FileLocation, int], ids: dict[object, int]
    ) -> list[Thread]:
        """Return the living threads of the peer.

        Args:
            locations: the known locks, by location.
            ids: the ids of all other locks, filled in as they appear.
        """
        self._memory.refresh()
        self._clock.calibrate()

        def lock(key: int) -> int:
            kind = _KINDS.get(key >> _KIND_SHIFT)
            location = _location(self._space, kind, key & _ADDRESS) if kind else None
            if location is not None and location in locations:
                return locations[location]
            return ids.setdefault((self._pid, key), _FIRST_ID + len(ids))

        living = set(procfs.tids(self._pid))
        reading = self._reader.read()
        self.handed_over = reading.handed_over
        return [
            Thread(
                tid=tid,
                name="",
                alive=True,
                state=ThreadState.OTHER,
                waiting_for=self._wait(raw, lock(raw.wait.key)) if raw.wait else None,
                holds=tuple(
                    Held(
                        lock=lock(entry.key),
                        site=0,
                        duration_s=None,
                        shared=bool(entry.flags & lib.LT_HELD_SHARED),
                    )
                    for entry in raw.held
                ),
                wait_s={},
                cpu_s=0.0,
                acquisitions=None,
                contended=None,
                pid=self._pid,
            )
            for tid, raw in reading.newest.items()
            if tid in living
        ]

    def _wait(self, raw: RawThread, lock: int) -> Wait | None:
        """Return the wait for a mutex or rwlock; too little is known here of other waits."""
        wait = raw.wait
        kind = _KINDS.get(wait.key >> _KIND_SHIFT) if wait else None
        if wait is None or kind is None:
            return None
        return Wait(
            lock=lock,
            kind=kind,
            duration_s=self._clock.seconds(raw.now - wait.since),
            holders=(),
            stack=0,
            site=0,
            seq=wait.seq,
            timed=bool(wait.flags & lib.LT_WAIT_TIMED),
            shared=bool(wait.flags & lib.LT_WAIT_SHARED),
            holder_seen=wait.holder,
            pshared=bool(wait.flags & lib.LT_WAIT_PSHARED),
        )
