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

from dataclasses import dataclass, replace

from locktop.collector.model import TimeSplit

#: Of these not all is known, where the kernel does not count.
RUNNABLE, DISK, WAITS = ("runnable",), ("disk",), ("contended", "idle")


@dataclass(frozen=True, slots=True)
class Used:
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
    cpu = _within(used.ran_s / interval_s, 1.0)
    runnable = _within((used.queued_s or 0.0) / interval_s, 1.0 - cpu)
    disk_s = used.disk_seen_s if used.disk_s is None else used.disk_s
    disk = _within(disk_s / interval_s, 1.0 - cpu - runnable)
    left = max(0.0, 1.0 - cpu - runnable - disk)
    waited = contended + idle
    scale = left / waited if waited > left else 1.0
    contended, idle = contended * scale, idle * scale
    other = max(0.0, left - contended - idle)
    return TimeSplit(
        cpu=cpu,
        runnable=runnable,
        contended=contended,
        idle=idle,
        disk=disk,
        other=other,
        unknown=_unknown(used, waits_known),
    )


def _within(share: float, most: float) -> float:
    return max(0.0, min(share, most))


def _unknown(used: Used, waits_known: bool) -> tuple[str, ...]:
    return (
        *(RUNNABLE if used.queued_s is None else ()),
        *(() if waits_known else WAITS),
        *(DISK if used.disk_s is None else ()),
    )


def reclassified(time: TimeSplit | None, part: float, to_idle: bool) -> TimeSplit | None:
    """Return the split with a ``part``, 0..1, of what was contended told to be idle, or the other
    way around."""
    if time is None or part <= 0.0:
        return time
    moved = (time.contended if to_idle else time.idle) * min(part, 1.0)
    moved = moved if to_idle else -moved
    return replace(time, contended=time.contended - moved, idle=time.idle + moved)


def mean(times: list[TimeSplit]) -> TimeSplit | None:
    """Return the mean of several, None of none."""
    if not times:
        return None
    if len(times) == 1:
        return times[0]
    count = len(times)
    unknown = dict.fromkeys(name for time in times for name in time.unknown)
    return TimeSplit(
        cpu=sum([time.cpu for time in times]) / count,
        runnable=sum([time.runnable for time in times]) / count,
        contended=sum([time.contended for time in times]) / count,
        idle=sum([time.idle for time in times]) / count,
        disk=sum([time.disk for time in times]) / count,
        other=sum([time.other for time in times]) / count,
        unknown=tuple(unknown),
    )
