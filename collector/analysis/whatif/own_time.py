"""Splits the time that threads spend between their lock calls: on a CPU, asleep, without a CPU.

Samples have the states of threads. Each sample lies between two lock calls of its thread. So the
samples say between which calls threads compute, and between which calls they sleep. The kernel says
for how long each thread had a CPU, and for how long the thread wanted one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from math import exp
from typing import NamedTuple

from locktop.collector.analysis.whatif.boundaries import At, Boundary
from locktop.collector.analysis.whatif.evidence import StateSample

#: By so many samples the mean of the threads counts in each pair.
_PRIOR = 0.5


class CallPair(NamedTuple):
    """The calls before and after a part of a thread's own time."""

    before: At
    before_site: int
    after: At
    after_site: int


class TimeUse(NamedTuple):
    """A segment without the time in which the thread wanted a CPU, nanoseconds."""

    cpu_ns: int
    sleep_ns: int


def _site_key(boundary: Boundary) -> int:
    return boundary.site or boundary.lock


def pair_of(before: Boundary, after: Boundary) -> CallPair:
    """Return the pair of the time between two boundaries."""
    return CallPair(before.at, _site_key(before), after.at, _site_key(after))


def is_own(before: Boundary) -> bool:
    """Return whether the time after a boundary is the thread's own, and not a wait."""
    return before.at is not At.REQUESTED


class ReadyShares:
    """The share of the time in which threads were ready to run, by pair."""

    def __init__(
        self,
        boundaries: Mapping[int, Sequence[Boundary]],
        samples: Iterable[StateSample],
    ) -> None:
        self._counts: dict[CallPair, list[int]] = {}  # ready, all
        moments = {tid: [one.time_ns for one in found] for tid, found in boundaries.items()}
        for sample in samples:
            number = bisect_right(moments.get(sample.tid, ()), sample.time_ns)
            of_thread = boundaries.get(sample.tid, ())
            if not 0 < number < len(of_thread) or not is_own(of_thread[number - 1]):
                continue
            pair = pair_of(of_thread[number - 1], of_thread[number])
            counts = self._counts.setdefault(pair, [0, 0])
            counts[0] += sample.is_ready
            counts[1] += 1

    def of(self, durations_ns: Mapping[CallPair, float], ready_ns: float) -> dict[CallPair, float]:
        """Return the share of each pair of some threads, 0 to 1.

        Args:
            durations_ns: the time of these threads in each pair, nanoseconds.
            ready_ns: the time in which they were ready, by the kernel, nanoseconds.

        The kernel's time is exact. The samples have a bias, for the one who takes them needs a CPU.
        So the odds of each share are multiplied by what makes the sum the kernel's.
        """
        whole_ns = sum(durations_ns.values())
        mean = min(1.0, ready_ns / whole_ns) if whole_ns else 1.0
        shares = {pair: self._sampled(pair, mean) for pair in durations_ns}
        if not whole_ns:
            return shares
        low, high = -20.0, 20.0  # of the logarithm of the factor
        for _ in range(40):
            middle = (low + high) / 2
            sum_ns = sum(
                _scaled(shares[pair], middle) * part for pair, part in durations_ns.items()
            )
            low, high = (middle, high) if sum_ns < ready_ns else (low, middle)
        return {pair: _scaled(share, low) for pair, share in shares.items()}

    def _sampled(self, pair: CallPair, mean: float) -> float:
        ready, count = self._counts.get(pair, (0, 0))
        # A few samples more, with the mean: no share is surely 0 or 1.
        return (ready + mean * _PRIOR) / (count + _PRIOR)


def _scaled(share: float, factor_log: float) -> float:
    factor = exp(factor_log)
    return share * factor / (1 - share + share * factor)


def split(durations_ns: Sequence[int], ready_share: float, cpu_share: float) -> list[TimeUse]:
    """Split parts of threads' own time.

    Args:
        durations_ns: the parts, all of one pair, nanoseconds.
        ready_share: the share of their time in which the threads were ready to run.
        cpu_share: the share of the ready time in which they had a CPU.

    Returns:
        what each part used. The time without a CPU is taken from the longest parts, for few parts
        meet the end of a slice.
    """
    ready = [duration * ready_share for duration in durations_ns]
    level_ns = _level(ready, sum(ready) * cpu_share)
    return [
        TimeUse(cpu_ns=round(min(part, level_ns)), sleep_ns=round(duration * (1 - ready_share)))
        for duration, part in zip(durations_ns, ready, strict=True)
    ]


def _level(parts: Sequence[float], wanted: float) -> float:
    """Return the level at which cut parts add up to ``wanted``."""
    left, count = wanted, len(parts)
    for part in sorted(parts):
        if part * count >= left:
            return left / count
        left -= part
        count -= 1
    return max(parts, default=0.0)
