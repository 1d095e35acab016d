"""The other watched processes that share locks with this one: what their threads have and want.

A lock in shared memory has another address and another number in each process, but lies at the
same place of the same file. Thread ids tell threads of all processes apart where all count alike:
so only processes of one pid namespace, which is also the tool's, are put together.
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
from locktop.collector.native import lib
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.reader import RawThread, Reader
from locktop.collector.sources import discover
from locktop.collector.symbols.memory_map import AddressSpace, parse

_KINDS: dict[int, Kind] = {lib.LT_KIND_MUTEX: Kind.MUTEX, lib.LT_KIND_RWLOCK: Kind.RWLOCK}
_KIND_SHIFT: int = lib.LT_KIND_SHIFT
_ADDRESS: int = (1 << _KIND_SHIFT) - 1
#: To go through all processes is worth while only for a wait that lasts, and not in every look.
_LASTING_S = 0.5
_EVERY_S = 10.0
#: Servers have hundreds of processes that wait for one lock.
_MAX_PEERS = 8
#: Beyond the numbers of this process's locks.
_FIRST_ID = 1 << 40


class Place(NamedTuple):
    """Where a lock lies, the same in all processes."""

    kind: Kind
    device: str
    inode: int
    offset: int


class PeerProcesses:
    """Those of one process, look after look."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._peers: list[_Peer] = []
        self._found_at = 0.0
        self._ids: dict[object, int] = {}
        self.handed_over = False  # they release locks in threads that did not take them

    def threads(self, own: Sequence[Thread], locks: Mapping[int, Lock]) -> tuple[Thread, ...]:
        """Return the neighbours' threads; none unless one of ``own`` has waited for a while for a
        lock that processes share. The locks have the ids of ``locks`` where they are the same."""
        if self._target.own_pid != self._target.pid or not any(map(_waits_for_others, own)):
            self.close()
            return ()
        try:
            places = _places(AddressSpace(parse(procfs.maps(self._target.pid))), own, locks)
        except OSError:
            return ()
        if time.monotonic() - self._found_at > _EVERY_S:
            self.close()
            found_peers = _peers(self._target.pid, {place[1:3] for place in places}, _owners(own))
            self._peers = list(islice(found_peers, _MAX_PEERS))
            self._found_at = time.monotonic()
        found: list[Thread] = []
        self.handed_over = False
        for peer in self._peers:
            try:
                found += peer.threads(places, self._ids)
                self.handed_over |= peer.handed_over
            except (OSError, LocktopError):
                continue  # it has ended
        return tuple(found)

    def close(self) -> None:
        """Let go of them."""
        for peer in self._peers:
            peer.close()
        self._peers, self._found_at = [], 0.0


def _waits_for_others(thread: Thread) -> bool:
    wait = thread.waiting_for
    return (
        wait is not None
        and wait.pshared
        and not wait.timed
        and wait.kind in _KINDS.values()
        and wait.duration_s > _LASTING_S
    )


def _places(
    space: AddressSpace, own: Sequence[Thread], locks: Mapping[int, Lock]
) -> dict[Place, int]:
    """Return the locks that own threads have or want, and that lie in memory of several."""
    wanted = {thread.waiting_for.lock for thread in own if thread.waiting_for}
    wanted.update(entry.lock for thread in own for entry in thread.holds)
    found: dict[Place, int] = {}
    for id_ in wanted & locks.keys():
        place = _place(space, locks[id_].kind, locks[id_].address)
        if place is not None:
            found[place] = id_
    return found


def _place(space: AddressSpace, kind: Kind, address: int) -> Place | None:
    mapping = space.find(address)
    if mapping is None or not mapping.shared or not mapping.inode:
        return None
    offset = mapping.offset + address - mapping.start
    return Place(kind, mapping.device, mapping.inode, offset)


def _owners(own: Sequence[Thread]) -> set[int]:
    """Return whom those that wait for what processes share saw have it."""
    waits = [thread.waiting_for for thread in own if _waits_for_others(thread)]
    return {wait.holder_seen for wait in waits if wait and wait.holder_seen}


def _peers(but: int, files: set[tuple[str, int]], owners: set[int]) -> Iterator[_Peer]:
    """Return the watched processes that share one of the files, those of the owners first."""
    pids = [pid for pid in procfs.pids() if pid != but]
    for pid in sorted(pids, key=lambda pid: not _has_one_of(pid, owners)):
        try:
            maps = procfs.maps(pid)
            if discover.LIBRARY not in maps:
                continue
            space = AddressSpace(parse(maps))
            if any(one.shared and (one.device, one.inode) in files for one in space.mappings):
                yield _Peer(pid, space)
        except (OSError, LocktopError):
            continue  # not ours to see, or not there any more


def _has_one_of(pid: int, tids: set[int]) -> bool:
    return any(os.path.exists(f"/proc/{pid}/task/{tid}") for tid in tids)


def annotate(deadlocks: Iterable[Deadlock], beside: Sequence[Thread]) -> tuple[Deadlock, ...]:
    """Return those that stop threads of this process, with the process of each thread."""
    pids = {thread.tid: thread.pid for thread in beside}
    found = []
    for one in deadlocks:
        cycle = tuple([replace(edge, pid=pids.get(edge.tid, 0)) for edge in one.cycle])
        stuck = tuple([tid for tid in one.stuck if tid not in pids])
        if stuck or any(not edge.pid for edge in cycle):
            found.append(replace(one, cycle=cycle, stuck=stuck))
    return tuple(found)


class _Peer:
    """One other process."""

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

    def threads(self, places: Mapping[Place, int], ids: dict[object, int]) -> list[Thread]:
        """Return its living threads; what they hold or wait for may lie in ``places``."""
        self._memory.refresh()
        self._clock.calibrate()

        def lock(key: int) -> int:
            kind = _KINDS.get(key >> _KIND_SHIFT)
            place = _place(self._space, kind, key & _ADDRESS) if kind else None
            if place is not None and place in places:
                return places[place]
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
                    Held(lock(entry.key), 0, None, 0, bool(entry.flags & lib.LT_HELD_SHARED))
                    for entry in raw.held
                ),
                wait_s={},
                cpu_s=0.0,
                acquisitions=0,
                contended=0,
                pid=self._pid,
            )
            for tid, raw in reading.newest.items()
            if tid in living
        ]

    def _wait(self, raw: RawThread, lock: int) -> Wait | None:
        """Of what is waited for in other ways not enough is known here."""
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
