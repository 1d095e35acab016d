"""The pressure of a lock: the share of all threads' time that went into waits for the lock."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from msgspec import Struct


class PressurePoint(Struct, frozen=True, gc=False):
    """The counters of a lock at one moment."""

    time_s: float
    wait_s: float  # seconds waited by all threads until then, with the waits that go on
    threads: int  # that live


def pressure(points: Sequence[PressurePoint], slices: int) -> tuple[float, ...]:
    """Return the pressure of a lock in equal slices of the time from the first to the last point.

    Between two points the waits are taken as even.

    Args:
        points: at increasing times.
        slices: the number of slices, at least 1.

    Returns:
        shares from 0 to 1, the earliest first; () for fewer than two points.
    """
    if len(points) < 2 or points[-1].time_s <= points[0].time_s:
        return ()
    begin_s, end_s = points[0].time_s, points[-1].time_s
    length_s = (end_s - begin_s) / slices
    borders = [begin_s + length_s * number for number in range(slices)] + [end_s]
    waits = [_seconds_until(points, border) for border in borders]
    return tuple(
        _share(after - before, _threads(points, begin, begin + length_s) * length_s)
        for before, after, begin in zip(waits, waits[1:], borders, strict=False)
    )


def _share(part: float, whole: float) -> float:
    return min(max(part / whole, 0.0), 1.0) if whole > 0 else 0.0


def _seconds_until(points: Sequence[PressurePoint], time_s: float) -> float:
    """Return the seconds waited until a moment."""
    after = bisect_right(points, time_s, key=_time)
    if after == 0:
        return points[0].wait_s
    if after == len(points):
        return points[-1].wait_s
    first, second = points[after - 1], points[after]
    part = (time_s - first.time_s) / (second.time_s - first.time_s)
    return first.wait_s + part * (second.wait_s - first.wait_s)


def _threads(points: Sequence[PressurePoint], begin_s: float, end_s: float) -> float:
    """Return the mean number of threads of a slice."""
    first = max(bisect_right(points, begin_s, key=_time) - 1, 0)
    within = [point for point in points[first:] if point.time_s <= end_s] or [points[first]]
    return sum(point.threads for point in within) / len(within)


def _time(point: PressurePoint) -> float:
    return point.time_s
