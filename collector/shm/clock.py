"""Converts ticks of the target's clock to seconds."""

from __future__ import annotations

import time

from locktop.collector.native import ffi, lib
from locktop.collector.shm.layout import Header

#: Over a shorter time, two pairs of readings do not give a rate good to 1e-5.
_BASELINE_NS = 10_000_000
#: Readings of which the quickest counts.
_READINGS = 3
_SLOWEST_HZ, _FASTEST_HZ = 1e6, 1e11


class Clock:
    """Converts ticks to seconds and back.

    The rate comes from two pairs of readings. The target left the first pair in its header; this
    class takes the second pair. The rate is the better, the longer the process has run.
    """

    def __init__(self, header: Header) -> None:
        self.kind = header.clock
        self._ticks0 = header.clock0_ticks
        self._ns0 = header.clock0_ns
        self._named_hz = float(header.clock_hz)
        self.hz = 1e9  # the present rate, ticks of a second
        self.calibrate()

    def calibrate(self) -> None:
        """Take the second pair again."""
        if self.kind != lib.LT_CLOCK_COUNTER:
            return
        ticks, ns = clock_pair(self.kind)
        if not self._named_hz and 0 <= ns - self._ns0 < _BASELINE_NS:
            time.sleep(_BASELINE_NS / 1e9)  # the process is too young for a rate
            ticks, ns = clock_pair(self.kind)
        self.hz = self._rate(ticks - self._ticks0, ns - self._ns0)

    def _rate(self, ticks: int, ns: int) -> float:
        measured = ticks * 1e9 / ns if ns >= _BASELINE_NS else 0.0
        if not _SLOWEST_HZ <= measured <= _FASTEST_HZ:
            return self._named_hz or self.hz
        # The two clocks drift apart if the machine sleeps, or if the process has its own clock.
        if self._named_hz and abs(measured / self._named_hz - 1) > 0.01:
            return self._named_hz
        return measured

    def now(self) -> int:
        """Return the current reading, in ticks."""
        return int(lib.lt_reader_ticks(self.kind))

    def now_with_wall_time(self) -> tuple[int, int]:
        """Return the ticks and the time since 1970 in nanoseconds, of the same moment."""
        # The kernel may suspend this thread between two readings, even for milliseconds.
        readings = [(time.time_ns(), self.now(), time.time_ns()) for _ in range(_READINGS)]
        before_ns, ticks, after_ns = min(readings, key=lambda reading: abs(reading[2] - reading[0]))
        return ticks, (before_ns + after_ns) // 2

    def ticks(self, seconds: float) -> int:
        """Return a span of seconds in ticks."""
        return int(seconds * self.hz)

    def seconds(self, ticks: int) -> float:
        """Return a span of ticks in seconds. A negative span gives 0."""
        return ticks / self.hz if ticks > 0 else 0.0


def clock_pair(kind: int) -> tuple[int, int]:
    """Return the clock's ticks and the monotonic time in nanoseconds, of the same moment."""
    ticks, ns = ffi.new("uint64_t *"), ffi.new("uint64_t *")
    lib.lt_reader_clock_pair(kind, ticks, ns)
    return int(ticks[0]), int(ns[0])
