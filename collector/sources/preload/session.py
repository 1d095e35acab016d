"""One file of the library's, and all that reads it: made anew when the process executes another
program."""

from __future__ import annotations

from collections.abc import Mapping

from locktop.collector.model import Frame
from locktop.collector.shm import control
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.event_ring import FlightRecorder
from locktop.collector.shm.layout import LockRow
from locktop.collector.shm.lock_names import GivenNames
from locktop.collector.shm.misuse_log import Misuses
from locktop.collector.shm.reader import RawThread, Reader
from locktop.collector.shm.segment import SharedMemory
from locktop.collector.sources.preload.idle_cache import IdleCache
from locktop.collector.sources.preload.lock_builder import LockBuilder
from locktop.collector.sources.preload.lock_orders import LockOrders
from locktop.collector.sources.preload.stack_table import StackFrames
from locktop.collector.sources.preload.thread_builder import ThreadBuilder
from locktop.collector.sources.probes import native_stacks
from locktop.collector.sources.probes.native_stacks import NativeStacks
from locktop.collector.sources.probes.python_stacks import PythonStacks, Waits
from locktop.collector.symbols.python.frame_reader import PythonReader
from locktop.collector.symbols.resolver import Resolver


class Session:
    """What belongs to one file."""

    def __init__(self, pid: int, memory: SharedMemory, stop_threads: bool) -> None:
        """``stop_threads``: see attach()."""
        self.memory = memory
        self.header = memory.header()
        self.clock = Clock(self.header)
        self.unloads = self.header.unloads
        self.reader = Reader(memory, self.clock)
        self.recorder = FlightRecorder(memory)
        self.resolver = resolver = Resolver(pid)
        self.frames = StackFrames(memory, resolver)
        self.native_stacks = NativeStacks(pid, resolver, stop_threads)
        self.python = PythonStacks(PythonReader(pid), self._native)
        self.waits: Waits = {}  # of the last look
        self.newest: Mapping[int, RawThread] = {}  # of it too
        self.given = GivenNames(memory)
        self.misuses = Misuses(memory, self.clock)
        self.orders = LockOrders(memory, resolver)
        self.rows: dict[int, LockRow] = {}  # of the last look
        self.idle_cache = IdleCache()
        self.threads = ThreadBuilder(self.clock)
        self.locks = LockBuilder(self.clock, resolver, self.given, self._merged)
        self.claim = control.Claim(memory, self.clock)
        self.asleep: frozenset[tuple[int, int]] = frozenset()  # stuck waits: tid, seq
        self.seen_alive = 0  # ticks

    def _native(self, stack: int) -> tuple[Frame, ...]:
        """Of either kind."""
        if stack >= native_stacks.FIRST_ID:
            return self.native_stacks.frames(stack)
        return self.frames.of(stack)

    def keep_waits(self, newest: Mapping[int, RawThread]) -> None:
        """Take the threads of a look, by tid."""
        self.waits, self.newest = _waits(newest), newest

    def read_waits(self) -> Waits:
        """Return those of this moment."""
        return _waits(self.reader.read_threads())

    def _merged(self, tid: int) -> tuple[Frame, ...]:
        return self.python.of_wait(tid, self.waits)

    def hurry(self) -> None:
        """Wait for no names any more. For a handler of signals."""
        self.resolver.hurry()
        self.python.hurry()

    def close(self) -> None:
        """Let go of it, and of the claim on the process."""
        self.claim.close()
        self.memory.close()
        self.resolver.close()
        self.python.close()


def _waits(threads: Mapping[int, RawThread]) -> Waits:
    return {tid: (raw.block.birth, raw.wait.seq) for tid, raw in threads.items() if raw.wait}
