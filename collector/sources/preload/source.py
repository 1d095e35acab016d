"""The exact source: a process that runs with the library, from attach to its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from typing import Any

from msgspec.structs import replace

from locktop.collector.analysis.idle.rules import Rules
from locktop.collector.errors import LocktopError
from locktop.collector.linux import procfs
from locktop.collector.linux.process_info import iso
from locktop.collector.model import Snapshot
from locktop.collector.sanitize import clean
from locktop.collector.shm import control
from locktop.collector.shm.ring_drain import FIRST_CALLS, RingDrain
from locktop.collector.shm.segment import SharedMemory
from locktop.collector.sources import discover, gc_pause
from locktop.collector.sources.base import OngoingWait
from locktop.collector.sources.preload import wait_poll
from locktop.collector.sources.preload.peer_processes import PeerProcesses
from locktop.collector.sources.preload.scan import PreloadScan
from locktop.collector.sources.preload.session import PreloadSession
from locktop.collector.sources.watched_process import WatchedProcess

#: A program loads the library and makes its file first of all after an exec. Number of tries.
_SCANS_AFTER_EXEC = 5
_AFTER_EXEC_S = 0.02


class PreloadSource:
    """Scans one preloaded process."""

    def __init__(
        self,
        pid: int,
        rules: Rules | None = None,
        stop_threads: bool = False,
        of_classes: bool = False,
    ) -> None:
        """See attach() for ``rules``, ``stop_threads`` and ``of_classes``.

        Raises:
            NotPreloadedError: the process runs without the library.
            LocktopError: there is no such process, or its shared memory is damaged.
        """
        self._rules = rules
        self._stop_threads = stop_threads
        self._of_classes = of_classes
        self._drains: list[RingDrain] = []
        #: The arguments of start_part() by name, while the part is at work.
        self._started: dict[str, tuple[Any, ...]] = {}
        self._watched = WatchedProcess(pid)
        memory = discover.open_memory(self._watched.target)
        self._session = self._new_session(memory)
        self._peers = PeerProcesses(self._watched.target)
        self._exe = self._executable()
        self._busy = threading.Lock()  # another thread sets levels

    def _new_session(self, memory: SharedMemory) -> PreloadSession:
        session = PreloadSession(
            self._watched, memory, self._rules, self._stop_threads, self._of_classes
        )
        self._drains = [drain for drain in self._drains if not drain.is_closed]
        for drain in self._drains:
            drain.follow(memory)
        # Two runs of one program differ in this alone.
        self._watched.figures.counted_since = iso(session.header.created_real_ns / 1e9)
        return session

    def close(self) -> None:
        """Release the process; a claim on the process expires by itself."""
        self._session.close()
        self._watched.close()
        self._peers.close()

    def scan(self, resolve: bool = False) -> Snapshot:
        with self._busy:
            last = self._watched.last
            if last is not None and last.ended:
                return last
            state = self._state()
            left = self._follow_exec() if state else None
            if left is not None:
                snapshot = left
            elif state:
                snapshot = self._scan(state, resolve)
            else:
                snapshot = self._last_scan(resolve)
            named = resolve and not self._watched.hurried
            self._session.idle_cache.learn(snapshot, named)
            self._watched.last = snapshot
            return snapshot

    def _scan(self, state: str, resolve: bool) -> Snapshot:
        scan = PreloadScan(self._session, self._peers, state, resolve)
        # Objects for names stay; the next scan releases all others.
        with nullcontext() if resolve else gc_pause.paused():
            return scan.run()

    def _last_scan(self, resolve: bool) -> Snapshot:
        """Read the file of an ended process (exit_snapshot.py), else end the last snapshot."""
        self._session.resolver.keep_maps()
        try:
            return self._scan("", resolve)
        except LocktopError as error:
            if self._watched.last is None:
                raise
            return _ended_snapshot(self._watched.last, f"these are not the final figures: {error}")

    def waits(self) -> Mapping[int, OngoingWait] | None:
        with self._busy:
            session = self._session
            is_other = session.memory.is_unlinked() or self._executable() != self._exe
            if is_other or not self._state():
                return None
            session.memory.refresh()
            if session.memory.size < session.header.limit:
                return None
            return wait_poll.read(session.reader.threads, session.clock, session.idle_cache)

    def hurry(self) -> None:
        self._watched.hurried = True
        self._session.hurry()

    def follow(self, tid: int, locks: Collection[int] | None = None) -> None:
        self._watched.followed_thread.follow(tid)
        self._watched.followed_locks = locks
        self._session.probes.holders.follow(locks)

    def want_section(self, name: str, wanted: bool) -> None:
        self._watched.want_section(name, wanted)

    def set_reading_names(self, wanted: bool) -> None:
        self._watched.reads_names = wanted

    def set_level(self, name: str) -> str:
        with self._busy:
            if not self._state():
                raise LocktopError(
                    f"cannot set the level: process {self._watched.target} has ended"
                )
            left = self._follow_exec()
            if left is not None:
                raise LocktopError(f"cannot set the level: {left.notes[-1]}")
            return control.set_level(self._session.memory, name)

    def drain(self, first_calls: int = FIRST_CALLS) -> RingDrain:
        with self._busy:
            drain = RingDrain(self._session.memory, first_calls)
            self._drains = [
                *(open_drain for open_drain in self._drains if not open_drain.is_closed),
                drain,
            ]
            return drain

    def start_part(self, name: str, *arguments: Any) -> None:
        drain = self.drain(0)
        with self._busy:
            self._session.part(name).start(drain, True, *arguments)
            self._started[name] = arguments

    def end_part(self, name: str) -> None:
        with self._busy:
            self._session.part(name).end()
            self._started.pop(name, None)

    # ---- the identity of the process and of its program ----

    def _state(self) -> str:
        """Return the process's state letter from the kernel; "" after its end."""
        target = self._watched.target
        try:
            stat = procfs.stat(target.pid)
            # The first thread may have ended before the others.
            over = stat.state in "ZX" and len(procfs.tids(target.pid)) < 2
        except (OSError, ValueError):
            return ""
        return "" if over or stat.start_time != target.start_time else stat.state

    def _executable(self) -> str:
        try:
            return procfs.exe(self._watched.target.pid)
        except OSError:
            return ""

    def _follow_exec(self) -> Snapshot | None:
        """Follow exec(): pid and start time stay, the library puts a new file under the same name.

        Returns:
            the last snapshot, ended, if the new program runs without the library; else None.
        """
        exe, last = self._executable(), self._watched.last
        replaced = self._session.memory.is_unlinked()
        if not replaced and (exe == self._exe or not exe):
            return None
        memory = self._file_after_exec()
        if memory is None and last is not None and self._is_without_library():
            return _ended_snapshot(
                last, f"the process has executed {clean(exe)}, which runs without the library"
            )
        if memory is None:
            return None  # the file was removed, but the open file can still be read
        if memory.same_file(self._session.memory):
            memory.close()
            return None
        self._session.close()
        self._session = self._new_session(memory)
        for name, arguments in self._started.items():
            drain = RingDrain(memory, 0)
            self._drains.append(drain)
            self._session.part(name).start(drain, False, *arguments)
        self._exe = exe
        self._watched.figures.identify()
        return None

    def _file_after_exec(self) -> SharedMemory | None:
        """Return the file of the current program, which may take a moment to make the file."""
        for _ in range(_SCANS_AFTER_EXEC):
            try:
                return discover.open_memory(self._watched.target)
            except LocktopError:
                time.sleep(_AFTER_EXEC_S)
        return None

    def _is_without_library(self) -> bool:
        try:
            maps = procfs.maps(self._watched.target.pid)
        except OSError:
            return False
        return bool(maps) and discover.LIBRARY not in maps


def _ended_snapshot(last: Snapshot, note: str) -> Snapshot:
    """Return the last snapshot of a process that locktop cannot read any more."""
    return replace(last, ended=True, notes=(*last.notes, note))
