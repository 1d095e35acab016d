"""The sampled source: a process without the library, observed through /proc and its memory.

Nothing in the process stops or changes. A thread of locktop takes samples, as often as a share of a
CPU allows. A scan takes one more sample and makes a snapshot of all of them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping
from typing import Any

from msgspec.structs import replace

from locktop.collector.analysis.idle.rules import Rules
from locktop.collector.errors import LocktopError, reason_of
from locktop.collector.extension.discovery import extensions
from locktop.collector.linux import procfs, ptrace_access, thread_files
from locktop.collector.linux.process_info import iso
from locktop.collector.model import Snapshot, ThreadState
from locktop.collector.sources import discover, gc_pause
from locktop.collector.sources.base import OngoingWait
from locktop.collector.sources.sampling.cpu_budget import CpuBudget
from locktop.collector.sources.sampling.scan import SamplingScan
from locktop.collector.sources.sampling.session import SamplingSession, executed_program
from locktop.collector.sources.watched_process import WatchedProcess
from locktop.collector.symbols.bounded_worker import BoundedWorker

_UNCOUNTED = (
    "this kernel does not report when threads sleep (CONFIG_SCHED_INFO);"
    f" {ptrace_access.HOW_TO_PRELOAD}"
)
#: Share of locktop's descriptors for the threads of holders. Samples keep other files of all
#: threads.
_FEW_FILES = 0.125


class SamplingSource:
    """Samples one process."""

    def __init__(
        self,
        pid: int,
        rules: Rules | None = None,
        why: str = "",
        stop_threads: bool = False,
        worker: BoundedWorker | None = None,
    ) -> None:
        """See attach() for ``rules`` and ``stop_threads``.

        Args:
            why: why the process has no library.
            worker: reads the frames of Python; None: one for this process alone.

        Raises:
            LocktopError: locktop may not read the process.
        """
        self._why = why
        self._rules = rules
        self._stop_threads = stop_threads
        self._worker = worker
        self._watched = WatchedProcess(pid, _FEW_FILES)
        self._begin_counting()
        self._cpu_budget = CpuBudget()
        self._busy = threading.Lock()
        self._closed = threading.Event()
        target = self._watched.target
        if _is_of_the_kernel(pid):
            raise LocktopError(f"process {target} has no program: it is one of the kernel's")
        self._session = self._new_session()
        try:
            self._session.sample()
        except OSError as error:
            self._let_go()
            raise self._refusal(error) from None
        if why_not := ptrace_access.memory_refusal(pid) or (
            "" if self._session.sampler.is_counted else _UNCOUNTED
        ):
            self._let_go()
            raise LocktopError(f"process {target} runs without the library, and {why_not}")
        self._thread = threading.Thread(target=self._sample_repeatedly, name="sampler", daemon=True)
        self._thread.start()

    def _begin_counting(self) -> None:
        self._begun = time.monotonic()
        self._watched.figures.counted_since = iso(time.time())

    def _new_session(self) -> SamplingSession:
        return SamplingSession(self._watched, self._rules, self._stop_threads, self._worker)

    def close(self) -> None:
        """Release the process."""
        self._closed.set()
        self._thread.join()
        self._let_go()

    def _let_go(self) -> None:
        self._watched.close()
        self._session.close()

    def scan(self, resolve: bool = False) -> Snapshot:
        self._cpu_budget.note_scan(time.monotonic(), time.process_time())
        with self._busy, gc_pause.paused():
            last = self._watched.last
            if last is not None and last.ended:
                return last
            try:
                self._follow_exec()
                scan = SamplingScan(self._session, self._begun, self._why_sampled(), resolve)
                snapshot = scan.run()
            except OSError as error:
                snapshot = self._last_scan(error)
            self._watched.last = snapshot
            return snapshot

    def waits(self) -> Mapping[int, OngoingWait] | None:
        with self._busy:
            session = self._session
            try:
                session.sample()
            except OSError:
                return None
            owners = {wait.sync_object.owner for wait in session.waits.values()}
            return {
                tid: OngoingWait(
                    lock=session.estimator.lock_of(wait).id,
                    kind=wait.sync_object.kind,
                    duration_s=session.sampled_at - session.begins.since(wait),
                    seq=wait.seq,
                    holds=tid in owners,
                )
                for tid, wait in session.waits.items()
            }

    def hurry(self) -> None:
        self._watched.hurried = True
        self._session.hurry()

    def follow(self, tid: int, locks: Collection[int] | None = None) -> None:
        self._watched.followed_thread.follow(tid)
        self._watched.followed_locks = locks
        self._session.probes.holders.follow(locks)

    def want_section(self, name: str, wanted: bool) -> None:
        """See Source. Parts of extensions read the memory of the library alone."""

    def set_reading_names(self, wanted: bool) -> None:
        self._watched.reads_names = wanted

    def set_level(self, name: str) -> str:
        raise LocktopError(
            f"there is no level to set: in process {self._watched.target} {self._why_sampled()}"
        )

    def drain(self, first_calls: int = 0) -> None:
        """See Source. A sampled process has no rings."""
        return None

    def start_part(self, name: str, *arguments: Any) -> None:
        """See Source. Parts of extensions read the memory of the library alone."""
        about = next(extension.about for extension in extensions() if extension.name == name)
        raise LocktopError(
            f"{about} is known with the library alone; process"
            f" {self._watched.target}: {self._why_sampled()}"
        )

    def end_part(self, name: str) -> None:
        """See Source. No part is at work."""

    def _why_sampled(self) -> str:
        return self._why or "it runs without the library"

    # ---- samples ----

    def _sample_repeatedly(self) -> None:
        """Take samples until closed, but none soon after the sample of a scan."""
        wait_s = self._cpu_budget.pause_s
        while not self._closed.wait(wait_s):
            begun = time.thread_time()
            with self._busy:
                due = self._session.sampled_at + self._cpu_budget.pause_s
                wait_s = due - time.monotonic()
                if wait_s > 0.0:
                    continue
                try:
                    self._session.sample()
                except (FileNotFoundError, ProcessLookupError):
                    return  # the next scan says that it has ended
                except OSError:
                    pass  # the error may pass
            self._cpu_budget.note_sample(time.thread_time() - begun)
            wait_s = self._cpu_budget.pause_s

    # ---- another program, and the end ----

    def _follow_exec(self) -> None:
        """Begin a new session if the process executed another program."""
        if executed_program(self._watched.target.pid) in (None, self._session.program):
            return
        before = self._session
        self._watched.figures.identify()
        self._begin_counting()
        self._session = self._new_session()
        before.close()

    def _last_scan(self, error: OSError) -> Snapshot:
        """Return the last snapshot of a process that is gone, or about to go."""
        last = self._watched.last
        forbidden = isinstance(error, PermissionError) and not self._is_ending()
        if last is None or forbidden or thread_files.is_ours(error):
            raise self._refusal(error)
        dead = (replace(thread, alive=False, state=ThreadState.OTHER) for thread in last.threads)
        return replace(last, threads=tuple(dead), ended=True)

    def _is_ending(self) -> bool:
        try:
            return ptrace_access.is_ending(self._watched.target.pid)
        except OSError:
            return True  # it has ended meanwhile

    def _refusal(self, error: OSError) -> LocktopError:
        target = self._watched.target
        if isinstance(error, PermissionError):
            return discover.untraceable_error(target)
        if thread_files.is_ours(error):
            return LocktopError(f"cannot read process {target}: {reason_of(error)}")
        return LocktopError(f"process {target} has ended")


def _is_of_the_kernel(pid: int) -> bool:
    try:
        return not procfs.maps(pid) and procfs.stat(pid).state not in "ZX"
    except (OSError, ValueError):
        return False  # later checks give the reason
