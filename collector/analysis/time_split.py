"""Splits the wall clock time of a thread into shares that add up to 1.

The figures of the kernel come first. In these, a thread is in one state at a time: on a CPU, in the
run queue, or asleep. The library observes a wait from before its call to after its return. So a
wait also has time on a CPU: the way into the kernel and back, and spinning. After the wake-up, a
wait has time in the run queue. The rules are:

- ``cpu`` and ``runnable`` are the kernel's figures. A thread that spins for a lock is on a CPU.
- The rest of the interval is sleep. ``disk`` is the kernel's figure.
- ``contended`` and ``idle`` are the library's figures, as far as sleep is left. If both together
  are longer, the excess was spent on a CPU or in the run queue. Each loses its part of the excess.
- ``other`` is the rest: sleep without a known reason.

A thread may spend a part of its waits on a CPU or in the run queue. The thread may also sleep for
other reasons. Then ``contended`` and ``idle`` are too large, at most by ``cpu`` plus ``runnable``,
and ``other`` is too small.
"""

from __future__ import annotations

from itertools import product

from msgspec import Struct
from msgspec.structs import replace

from locktop.collector.model import TimeSplit

_BOTH = (False, True)
#: A smaller share is what sums of floating-point numbers leave: no clock is that fine.
_MIN_SHARE = 1e-9
#: TimeSplit.unknown, by whether the run queue, the disks and the waits are counted.
_UNKNOWN = {
    (queue, disks, waits): (
        *(() if queue else ("runnable",)),
        *(() if waits else ("contended", "idle")),
        *(() if disks else ("disk",)),
    )
    for queue, disks, waits in product(_BOTH, repeat=3)
}


class Used(Struct, frozen=True, gc=False):
    """The kernel's figures of a thread in an interval, in seconds; None: not counted."""

    ran_s: float
    queued_s: float | None
    disk_s: float | None
    disk_seen_s: float = 0.0  # the known part, if the kernel does not count ``disk_s``


def split(
    interval_s: float, used: Used, contended: float, idle: float, waits_known: bool = True
) -> TimeSplit | None:
    """Return the split of an interval.

    Args:
        interval_s: The length of the interval.
        used: The kernel's figures.
        contended: The share of contended waits, 0..1, without waits that never sleep.
        idle: The share of idle waits, 0..1, without waits that never sleep.
        waits_known: Whether the library counts waits.

    Returns:
        None for an empty interval.
    """
    if interval_s <= 0.0:
        return None
    ran_s, queued_s, disk_s = used.ran_s, used.queued_s, used.disk_s
    # There are ten thousand splits a second: comparisons are cheaper than calls of min().
    cpu = ran_s / interval_s if ran_s > 0.0 else 0.0
    cpu = cpu if cpu < 1.0 else 1.0
    left = 1.0 - cpu
    runnable = queued_s / interval_s if queued_s and queued_s > 0.0 else 0.0
    runnable = runnable if runnable < left else left
    left -= runnable
    on_disk_s = used.disk_seen_s if disk_s is None else disk_s
    disk = on_disk_s / interval_s if on_disk_s > 0.0 else 0.0
    disk = disk if disk < left else left
    left -= disk
    contended = contended if contended >= _MIN_SHARE else 0.0
    idle = idle if idle >= _MIN_SHARE else 0.0
    waited = contended + idle
    if waited > left:
        contended, idle, waited = contended * left / waited, idle * left / waited, left
    other = left - waited if left - waited >= _MIN_SHARE else 0.0
    unknown = _UNKNOWN[queued_s is not None, disk_s is not None, waits_known]
    return TimeSplit(
        cpu=cpu,
        runnable=runnable,
        contended=contended,
        idle=idle,
        disk=disk,
        other=other,
        unknown=unknown,
    )


def remainder(share: float, moved: float) -> float:
    """Return the rest of a share of an interval, without the rounding errors of the sums."""
    rest = share - moved
    return rest if rest >= _MIN_SHARE else 0.0


def reclassify(time: TimeSplit | None, part: float, to_idle: bool) -> TimeSplit | None:
    """Return the split with a part of the contended time moved to the idle time, or the reverse.

    Args:
        time: The split, None if there is none.
        part: The share of the contended (or idle) time that moves, 0..1.
        to_idle: Whether the time moves to idle.
    """
    if time is None or part <= 0.0:
        return time
    part = min(part, 1.0)
    if to_idle:
        moved = time.contended * part
        return replace(time, contended=remainder(time.contended, moved), idle=time.idle + moved)
    moved = time.idle * part
    return replace(time, contended=time.contended + moved, idle=remainder(time.idle, moved))
