"""Splits the time that threads spend between their lock calls: on a CPU, asleep, without a CPU.

Samples have the states of threads. Each sample lies between two lock calls of its thread. So the
samples say between which calls threads compute, and between which calls they sleep. The kernel says
for how long each thread had a CPU, and for how long the thread wanted one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from math import exp
from typing import NamedTuple

from locktop.collector.extensions.whatif.analysis.boundaries import At, Boundary
from locktop.collector.extensions.whatif.analysis.evidence import StateSample

#: By so many samples the mean of the threads counts in each pair.
_PRIOR = 0.5
#: A thread that sleeps leaves its CPU, and that alone takes longer than this, nanoseconds.
_LEAST_SLEEP_NS = 2000
#: Where CPUs are short, so many of the parts of a pair did not meet that.
_LOW = 0.25
#: Threads that sleep for such a share of a pair's time may have waited for a CPU after each sleep.
_SLEEPS = 0.1
#: Halvings of an interval in a search.
_HALVINGS = 40


class CallPair(NamedTuple):
    """The calls before and after a part of a thread's own time.

    The call after it counts as one that did not wait: the thread does the same before both.
    """

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
    called = At.GOT if after.at is At.REQUESTED else after.at
    return CallPair(before.at, _site_key(before), called, _site_key(after))


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
        moments = {
            tid: [boundary.time_ns for boundary in of_thread]
            for tid, of_thread in boundaries.items()
        }
        for sample in samples:
            number = bisect_right(moments.get(sample.tid, ()), sample.time_ns)
            of_thread = boundaries.get(sample.tid, ())
            if not 0 < number < len(of_thread) or not is_own(of_thread[number - 1]):
                continue
            pair = pair_of(of_thread[number - 1], of_thread[number])
            counts = self._counts.setdefault(pair, [0, 0])
            counts[0] += sample.is_ready
            counts[1] += 1

    def shares_of(
        self, durations_ns: Mapping[CallPair, float], cpu_ns: float, queued_ns: float
    ) -> dict[CallPair, float]:
        """Return the share of each pair of some threads, 0 to 1.

        Args:
            durations_ns: the time of these threads in each pair, nanoseconds.
            cpu_ns: the time for which they had a CPU, by the kernel, nanoseconds.
            queued_ns: the time for which they waited for one, nanoseconds. Some of it is part of
                their waits: a woken thread needs a CPU to come back.

        The kernel's times are exact. The samples have a bias, for the one who takes them needs a
        CPU. So the kernel gives the limits for the sum of the samples. The odds of each share are
        multiplied by what makes the sum keep them.
        """
        whole_ns = sum(durations_ns.values())
        mean = min(1.0, (cpu_ns + queued_ns) / whole_ns) if whole_ns else 1.0
        shares = {pair: self._sampled_share(pair, mean) for pair in durations_ns}
        sampled_ns = sum(shares[pair] * part for pair, part in durations_ns.items())
        ready_ns = min(max(sampled_ns, cpu_ns), cpu_ns + queued_ns)
        if not whole_ns or ready_ns == sampled_ns:
            return shares
        low, high = -20.0, 20.0  # of the logarithm of the factor
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            sum_ns = sum(_scale(shares[pair], middle) * part for pair, part in durations_ns.items())
            low, high = (middle, high) if sum_ns < ready_ns else (low, middle)
        return {pair: _scale(share, low) for pair, share in shares.items()}

    def _sampled_share(self, pair: CallPair, mean: float) -> float:
        ready, count = self._counts.get(pair, (0, 0))
        # A few samples more, with the mean: no share is surely 0 or 1.
        return (ready + mean * _PRIOR) / (count + _PRIOR)


def _scale(share: float, factor_log: float) -> float:
    factor = exp(factor_log)
    return share * factor / (1 - share + share * factor)


def split(
    durations_ns: Mapping[CallPair, Sequence[int]],
    ready_shares: Mapping[CallPair, float],
    cpu_ns: float,
) -> dict[CallPair, list[TimeUse]]:
    """Split the parts of the own time of some threads.

    Args:
        durations_ns: the parts of each pair, nanoseconds.
        ready_shares: the share of their time in which the threads were ready to run.
        cpu_ns: the time for which the threads had a CPU, nanoseconds.

    Returns:
        what each part used. Few parts meet the end of a slice, but these then take much longer than
        the others of their pair. So a part that is longer than a multiple of the median of its pair
        counts as a usual one. The multiple is the same for all pairs, and makes the sum ``cpu_ns``.
    """
    sleeps = {
        pair: [_sleep_ns(duration, ready_shares[pair]) for duration in parts]
        for pair, parts in durations_ns.items()
    }
    ready = {
        pair: [part - sleep for part, sleep in zip(parts, sleeps[pair], strict=True)]
        for pair, parts in durations_ns.items()
    }
    cuts = _cuts(
        {
            pair: _Parts(sorted(parts), *_undisturbed_times(durations_ns[pair], sleeps[pair]))
            for pair, parts in ready.items()
        },
        cpu_ns,
    )
    return {
        pair: [
            TimeUse(
                cpu_ns=round(part if part <= cuts[pair].above else cuts[pair].to),
                sleep_ns=round(sleep),
            )
            for part, sleep in zip(parts, sleeps[pair], strict=True)
        ]
        for pair, parts in ready.items()
    }


def _sleep_ns(duration_ns: int, ready_share: float) -> float:
    """Return for how long a thread slept in a part of its own time; 0.0 if less than a switch."""
    sleep_ns = duration_ns * (1 - ready_share)
    return sleep_ns if sleep_ns >= _LEAST_SLEEP_NS else 0.0


class _Undisturbed(NamedTuple):
    """The short parts of a pair."""

    low: float  # for how long threads were ready there, nanoseconds
    sleeps: bool  # threads also sleep there


def _undisturbed_times(durations_ns: Sequence[int], sleeps: Sequence[float]) -> _Undisturbed:
    """Return for how long the threads were ready in the short parts of a pair."""
    low = sorted(durations_ns)[int(len(durations_ns) * _LOW)]
    slept_ns = sum(sleeps)
    return _Undisturbed(
        low=max(0.0, low - slept_ns / len(sleeps)), sleeps=slept_ns > _SLEEPS * sum(durations_ns)
    )


class _Cut(NamedTuple):
    """Parts longer than ``above`` count as ``to``."""

    above: float
    to: float


class _Parts:
    """The parts of one pair, sorted."""

    def __init__(self, parts: Sequence[float], low: float, sleeps: bool) -> None:
        self.sleeps = sleeps
        self.low = min(low, parts[len(parts) // 2])
        self.median = parts[len(parts) // 2]
        self.longest = parts[-1]
        self._parts = parts
        self._sums = [0.0, *accumulate(parts)]
        self._squares = [0.0, *accumulate(part * part for part in parts)]

    def usual(self, above: float) -> _Cut:
        """Return how to cut longer parts: as long as what an interrupt meets in the others.

        Long parts are interrupted more often: so each counts by its length.
        """
        below = bisect_right(self._parts, above)
        sum_ = self._sums[below]
        return _Cut(above, self._squares[below] / sum_ if sum_ else 0.0)

    def sum(self, cut: _Cut) -> float:
        """Return the sum of the parts after a cut."""
        below = bisect_right(self._parts, cut.above)
        return self._sums[below] + (len(self._parts) - below) * cut.to


def _cuts(parts: Mapping[CallPair, _Parts], wanted: float) -> dict[CallPair, _Cut]:
    """Return how to cut the parts of each pair. The cut parts add up to ``wanted``."""

    def surplus(cuts: Mapping[CallPair, _Cut]) -> float:
        return sum(parts[pair].sum(cut) for pair, cut in cuts.items()) - wanted

    def usual(multiple: float) -> dict[CallPair, _Cut]:
        return {pair: spread.usual(spread.median * multiple) for pair, spread in parts.items()}

    def levelled(level: float) -> dict[CallPair, _Cut]:
        # Most parts of some pair met the end of a slice. These are the longest parts of all.
        cuts = {
            pair: 0.0 if spread.sleeps else min(spread.low, level) for pair, spread in parts.items()
        }
        return {pair: _Cut(cut, cut) for pair, cut in cuts.items()}

    def reduced(share: float) -> dict[CallPair, _Cut]:
        # Threads that woke waited for a CPU each time.
        cuts = {
            pair: spread.low * (share if spread.sleeps else 1.0) for pair, spread in parts.items()
        }
        return {pair: _Cut(cut, cut) for pair, cut in cuts.items()}

    def between(share: float) -> dict[CallPair, _Cut]:
        cuts = {
            pair: spread.low + share * (spread.median - spread.low)
            for pair, spread in parts.items()
        }
        return {pair: _Cut(cut, cut) for pair, cut in cuts.items()}

    cuts_at: Callable[[float], dict[CallPair, _Cut]]
    low, high = 0.0, 1.0
    if surplus(reduced(0.0)) > 0:
        cuts_at, high = levelled, max(spread.low for spread in parts.values())
    elif surplus(reduced(1.0)) > 0:
        cuts_at = reduced
    elif surplus(between(1.0)) > 0:
        cuts_at = between
    else:
        multiples = [spread.longest / spread.median for spread in parts.values() if spread.median]
        cuts_at, low, high = usual, 1.0, max(multiples, default=1.0)
        if surplus(usual(high)) <= 0:
            return {pair: _Cut(spread.longest, spread.longest) for pair, spread in parts.items()}
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if surplus(cuts_at(middle)) > 0 else (middle, high)
    return cuts_at(low)
