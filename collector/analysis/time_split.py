"""Where the wall clock of a thread went: what the kernel and the library say, made to add up.

The kernel's figures come first, for a thread is in one state at a time: on a CPU, in the queue for
one, or asleep. The library sees a wait from before its call to after its return, so a wait holds
some of both: the way into the kernel and back, spinning, and after the wake-up the time in the
queue. Thus:

- ``cpu`` and ``runnable`` are the kernel's, whole. Who spins for a lock is on a CPU.
- What is left of the interval is sleep. ``disk`` is the kernel's.
- ``contended`` and ``idle`` are the library's, as far as sleep is left. Where both together are
  longer, that much of them was spent on a CPU or in the queue; it is taken from each in proportion.
- ``other`` is the rest: sleep of which nobody said what it is for.

So of waits that were partly spent on a CPU or in the queue, by a thread that also slept otherwise,
``contended`` and ``idle`` may be too large, at most by ``cpu`` plus ``runnable``, and ``other`` too
small.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from msgspec.structs import replace

from locktop.collector.model import TimeSplit

_BOTH = (False, True)
#: TimeSplit.unknown, by whether the queue, disks and waits are counted.
_UNKNOWN = {
    (queue, disks, waits): (
        *(() if queue else ("runnable",)),
        *(() if waits else ("contended", "idle")),
        *(() if disks else ("disk",)),
    )
    for queue, disks, waits in product(_BOTH, repeat=3)
}


class Used(NamedTuple):
    """What the kernel says of a thread in an interval, seconds; None: it does not count that."""

    ran_s: float
    queued_s: float | None
    disk_s: float | None
    disk_seen_s: float = 0.0  # for a disk as far as known, where it does not count


def split(
    interval_s: float, used: Used, contended: float, idle: float, waits_known: bool = True
) -> TimeSplit | None:
    """Return the split of an interval. ``contended`` and ``idle`` are the shares of it, 0..1, that
    were waited, without those in which a waiter never sleeps; ``waits_known``: whether the library
    counts them. None where the interval is none."""
    if interval_s <= 0.0:
        return None
    ran_s, queued_s, disk_s, disk_seen_s = used
    # Some ten thousand a second: no calls where a comparison does.
    cpu = ran_s / interval_s if ran_s > 0.0 else 0.0
    cpu = cpu if cpu < 1.0 else 1.0
    left = 1.0 - cpu
    runnable = queued_s / interval_s if queued_s and queued_s > 0.0 else 0.0
    runnable = runnable if runnable < left else left
    left -= runnable
    on_disk_s = disk_seen_s if disk_s is None else disk_s
    disk = on_disk_s / interval_s if on_disk_s > 0.0 else 0.0
    disk = disk if disk < left else left
    left -= disk
    waited = contended + idle
    if waited > left:
        contended, idle, waited = contended * left / waited, idle * left / waited, left
    unknown = _UNKNOWN[queued_s is not None, disk_s is not None, waits_known]
    return TimeSplit(cpu, runnable, contended, idle, disk, left - waited, unknown)


def reclassified(time: TimeSplit | None, part: float, to_idle: bool) -> TimeSplit | None:
    """Return the split with a ``part``, 0..1, of what was contended told to be idle, or the other
    way around."""
    if time is None or part <= 0.0:
        return time
    moved = (time.contended if to_idle else time.idle) * min(part, 1.0)
    moved = moved if to_idle else -moved
    return replace(time, contended=time.contended - moved, idle=time.idle + moved)
