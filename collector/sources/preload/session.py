"""Everything that belongs to one program of a preloaded process: its file, readers and probes.

``exec`` replaces the program, and the library replaces the file. Then the source makes a new
session.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

from locktop.collector.analysis.idle.classifier import Classifier
from locktop.collector.analysis.idle.rules import Rules
from locktop.collector.extension.discovery import extensions
from locktop.collector.extension.parts import Extension
from locktop.collector.model import Frame, Kind, Lock
from locktop.collector.shm import control
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.event_ring import FlightRecorder
from locktop.collector.shm.layout import LockRow
from locktop.collector.shm.lock_names import ProgramLockNames
from locktop.collector.shm.misuse_log import MisuseLog
from locktop.collector.shm.reader import RawThread, Reader
from locktop.collector.shm.segment import SharedMemory
from locktop.collector.shm.unloaded_code import UnloadedCode
from locktop.collector.sources.preload.condition_wakeups import ConditionWakeups
from locktop.collector.sources.preload.idle_cache import IdleCache
from locktop.collector.sources.preload.kept_locks import KeptLocks
from locktop.collector.sources.preload.lock_builder import LockBuilder
from locktop.collector.sources.preload.lock_orders import LockOrders
from locktop.collector.sources.preload.session_part import SessionContext, SessionPart
from locktop.collector.sources.preload.stack_table import StackFrames
from locktop.collector.sources.preload.thread_builder import ThreadBuilder
from locktop.collector.sources.preload.unobserved_locks import UnobservedLocks
from locktop.collector.sources.preload.unobserved_waits import UnobservedWaitProbe
from locktop.collector.sources.preload.wakers import Wakers
from locktop.collector.sources.probe_set import Probes
from locktop.collector.sources.probes import native_stacks
from locktop.collector.sources.probes.gil_holders import GilHolders
from locktop.collector.sources.probes.gil_reader import GilReader
from locktop.collector.sources.probes.holder_activity import HolderProbe
from locktop.collector.sources.probes.native_stacks import NativeStacks
from locktop.collector.sources.probes.probable_holders import ProbableHolders
from locktop.collector.sources.probes.python_holders import PythonHolders
from locktop.collector.sources.probes.python_lock_reader import PythonLockReader
from locktop.collector.sources.probes.python_shares import MetWait
from locktop.collector.sources.probes.python_stacks import PythonStacks, WaitKeys
from locktop.collector.sources.probes.python_thread_names import PythonThreadNames
from locktop.collector.sources.sampling.child_waits import ChildWaitsProbe
from locktop.collector.sources.watched_process import WatchedProcess
from locktop.collector.symbols.python.frame_reader import PythonReader
from locktop.collector.symbols.python.thread_names import ThreadNameReader
from locktop.collector.symbols.resolver import Resolver


class PreloadSession:
    """One program of a preloaded process."""

    def __init__(
        self,
        watched: WatchedProcess,
        memory: SharedMemory,
        rules: Rules | None,
        stop_threads: bool,
        of_classes: bool = False,
    ) -> None:
        """See attach() for ``rules``, ``stop_threads`` and ``of_classes``."""
        pid = watched.target.pid
        self.watched, self.memory = watched, memory
        self.header = memory.header()
        self.clock = Clock(self.header)
        self.unloads = self.header.unloads
        self.reader = Reader(memory, self.clock)
        self.wakeups = ConditionWakeups(pid, memory, self.clock, watched.tasks)
        self.recorder = FlightRecorder(memory)
        self.resolver = resolver = Resolver(pid)
        self.classifier = Classifier(rules)
        self.frames = StackFrames(memory, resolver)
        self.native_stacks = NativeStacks(pid, resolver, stop_threads)
        self.python = self._python_stacks(pid)
        self.waits: WaitKeys = {}  # of the last scan
        self.newest: Mapping[int, RawThread] = {}  # of the last scan, by tid
        self.given = ProgramLockNames(memory)
        self.unloaded_code = UnloadedCode(memory)
        self.misuses = MisuseLog(memory, self.clock)
        self.kept_locks = KeptLocks(self.reader, self.frames, self.clock)
        self.parts = _parts(
            SessionContext(pid, watched.target.own_pid, memory, self.clock, resolver, self.frames)
        )
        self.orders = LockOrders(memory, resolver, of_classes)
        self.rows: dict[int, LockRow] = {}  # of the last scan
        self.idle_cache = IdleCache()
        self.threads = ThreadBuilder(self.clock)
        self.locks = LockBuilder(self.clock, resolver, self.given, self._merged_frames)
        self.claim = control.Claim(memory, self.clock)
        self.asleep: frozenset[tuple[int, int]] = frozenset()  # waits in deadlocks: tid, seq
        #: Tids of owners that threads wait for, see fork_inherited.owners_left_by_fork().
        self.left_by_fork: frozenset[int] = frozenset()
        self.seen_alive = self.last_reading = 0  # ticks
        tasks, stacks, python_locks = watched.tasks, self.native_stacks, PythonLockReader(pid)
        holders = HolderProbe(pid, tasks, stacks, self.python, self._still_holds)
        holders.follow(watched.followed_locks)
        self.unobserved_waits = UnobservedWaitProbe(pid, tasks, stacks, resolver, self.classifier)
        self.unobserved_locks = UnobservedLocks(pid, resolver, stacks)
        self.probes = Probes(
            resolver,
            stacks,
            self.python,
            PythonThreadNames(ThreadNameReader(pid)),
            holders,
            self.classifier,
            ProbableHolders(pid, tasks, stacks),
            PythonHolders(pid, tasks, python_locks),
            GilHolders(pid, tasks, python_locks, GilReader(pid, python_locks)),
            ChildWaitsProbe(pid).annotate,
        )
        if watched.hurried:
            self.hurry()

    @cached_property
    def wakers(self) -> Wakers:
        """The holders of futexes by their wakes."""
        return Wakers(self.clock, self.locks, self.frames, self.resolver)

    def _python_stacks(self, pid: int) -> PythonStacks:
        frames, is_final = self._native_frames, self.resolver.is_final
        return PythonStacks(PythonReader(pid), frames, self._read_sample, is_final=is_final)

    def _native_frames(self, stack: int) -> tuple[Frame, ...]:
        """Return the frames of a stack that the library recorded or that a probe unwound."""
        if stack >= native_stacks.SAMPLES_FIRST_ID:
            by_part = (part.frames(stack) for _, part in self.parts)
            return next(filter(None, by_part), ())
        if stack >= native_stacks.FIRST_ID:
            return self.native_stacks.frames(stack)
        return self.frames.frames(stack)

    def _still_holds(self, holders: Collection[tuple[int, Lock]]) -> Collection[int]:
        """Return the ids of the locks that their threads hold at this moment.

        Args:
            holders: threads, each with a lock that it held.
        """
        listed = ((lock.id, self.newest.get(tid)) for tid, lock in holders)
        held = {id_ for id_, thread in listed if thread and id_ in self.reader.holds(thread)}
        semaphores = [(tid, lock.id) for tid, lock in holders if lock.kind is Kind.SEM]
        return held | self.reader.owned_semaphores(semaphores) if semaphores else held

    def keep_waits(self, newest: Mapping[int, RawThread]) -> None:
        """Keep the threads of a scan, by tid."""
        self.waits, self.newest = _waits(newest), newest

    def read_waits(self) -> WaitKeys:
        """Return the waits of this moment."""
        return _waits(self.reader.read_threads())

    def _read_sample(self) -> dict[int, MetWait]:
        """Return the waits of this moment by tid."""
        threads, tasks = self.reader.read_threads(), self.watched.tasks
        waits = {tid: raw.wait for tid, raw in threads.items() if raw.wait}
        keys = _waits(threads)
        try:
            asleep = tasks.asleep(waits)
        except OSError:
            return {}  # locktop lacks descriptors, or the process is gone
        after = self.read_waits()
        return {
            tid: MetWait(
                key=keys[tid],
                lock=wait.lock,
                stack=wait.stack,
                kernel_tid=tasks.kernel_tid(tid),
                # Between the two readings the thread was in this wait.
                runs=asleep.get(tid, 0) if after.get(tid) == keys[tid] else 0,
            )
            for tid, wait in waits.items()
        }

    def _merged_frames(self, tid: int) -> tuple[Frame, ...]:
        return self.python.wait_stack(tid, self.waits)

    def hurry(self) -> None:
        """Stop waiting for names. A signal handler may call this method."""
        self.resolver.hurry()
        self.python.hurry()

    def part(self, name: str) -> SessionPart:
        """Return the part that the extension with this name brings."""
        return next(part for extension, part in self.parts if extension.name == name)

    def close(self) -> None:
        """Release the file, and the claim on the process."""
        for _, part in self.parts:
            part.end()
        self.claim.close()
        self.memory.close()
        self.resolver.close()
        self.python.close()


def _parts(context: SessionContext) -> Sequence[tuple[Extension, SessionPart]]:
    """Return the parts that extensions bring."""
    return [
        (extension, extension.session_part(context))
        for extension in extensions()
        if extension.session_part is not None
    ]


def _waits(threads: Mapping[int, RawThread]) -> WaitKeys:
    return {tid: (raw.block.birth, raw.wait.seq) for tid, raw in threads.items() if raw.wait}
