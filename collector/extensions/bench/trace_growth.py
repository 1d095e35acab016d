"""Measures how fast the trace grows at each level, on a known mix of acquisitions.

The trace is the rings of all threads. A new record overwrites the oldest record of its ring. A
slower growth therefore reaches back further in the same memory. The benchmark program makes the mix
by handshake, so the numbers are exact and the same in each run.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing

from msgspec import Struct

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.bench.runner import environment, path
from locktop.collector.linux.target import find_process
from locktop.collector.native import lib, offset_of
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.reader import Reader
from locktop.collector.sources import discover

#: Name of a mix -> one of this number of acquisitions waits. Each wait contends with another
#: acquisition, so the number of acquisitions that meet another one is twice as large.
MIXES = {"5 % wait": 20, "5 % meet": 40}
LEVELS = ("contended", "blocks", "all")
_CYCLES = 2000
_RING_HEAD = offset_of("struct lt_thread", "ring_head")


class Growth(Struct, frozen=True):
    """The records that one level wrote for one mix."""

    mix: str  # a key of MIXES
    level: str  # one of LEVELS
    acquisitions: int
    contended: int
    records: int

    @property
    def bytes_each(self) -> float:
        """The mean number of bytes written for one acquisition."""
        return self.records * int(lib.LT_RECORD_SIZE) / self.acquisitions


def measure(cycles: int = _CYCLES) -> tuple[Growth, ...]:
    """Run every mix at every level. Raises LocktopError when a run fails."""
    return tuple(_run(mix, level, cycles) for mix in MIXES for level in LEVELS)


def times_longer(growths: Sequence[Growth], growth: Growth) -> float:
    """Return how much further back a trace reaches than a trace of level "all".

    Both traces take the same memory. ``growths`` has the growth of level "all" for the same mix.
    """
    whole = next(other for other in growths if other.mix == growth.mix and other.level == "all")
    return whole.records / growth.records


def _run(mix: str, level: str, cycles: int) -> Growth:
    command = [str(path()), "mix", str(MIXES[mix]), str(cycles)]
    with subprocess.Popen(
        command, env=environment(level), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as program:
        try:
            assert program.stdout is not None
            said = json.loads(program.stdout.readline())
            records = _records(program.pid)
        except (OSError, ValueError) as error:
            raise LocktopError(f"`{' '.join(command)}` failed: {error}") from error
        finally:
            assert program.stdin is not None
            program.stdin.close()
    return Growth(mix, level, int(said["acquisitions"]), int(said["contended"]), records)


def _records(pid: int) -> int:
    """Return the number of records that all threads of a process have written."""
    with closing(discover.open_memory(find_process(pid))) as memory:
        threads = Reader(memory, Clock(memory.header())).read_threads()
        heads = [memory.read(thread.offset + _RING_HEAD, 8) for thread in threads.values()]
        return sum(int.from_bytes(head, sys.byteorder) for head in heads)
