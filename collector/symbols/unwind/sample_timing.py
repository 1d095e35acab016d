"""Which samples of a thread's event show a fair moment, and when the event's period changes.

The kernel samples a thread by a timer, and stops the timer while the thread is off its CPU. A timer
may be due at such a moment. The timer then rings 10 us after the thread is back
(perf_swevent_start_hrtimer). So threads that switch often would be sampled too often at the code
that runs then. Such a sample is late by the thread's processor time.

A program with a rhythm of its own meets a steady timer in the same functions again and again. So
the period changes at random.
"""

from __future__ import annotations

import random

#: A sample is late if its delay is so much above the usual one, nanoseconds. The kernel's 10 us lie
#: above it, the usual differences of a timer's delay below.
_LATE_NS = 4000
#: The usual delay at first, and the largest step with which it is learnt, nanoseconds.
_FIRST_NS, _STEP_NS = 2000, 500
_WEIGHT = 1 / 8
#: Samples of an event with one period. A restarted timer loses a half period in the mean.
_SAMPLES = 8
#: The shortest and the longest period, as parts of the mean.
_SPREAD = 0.5, 1.5


class UsualDelay:
    """How late the samples of some events are, against the periods of their timers.

    Each stop of a timer adds some 0.1 us, so the usual delay depends on the program.
    """

    def __init__(self) -> None:
        self._usual_ns: float = _FIRST_NS

    def is_exceeded(self, delay_ns: int) -> bool:
        """Learn a delay, and tell whether the sample is late."""
        above_ns = delay_ns - self._usual_ns
        self._usual_ns += max(-_STEP_NS, min(above_ns * _WEIGHT, _STEP_NS))
        return above_ns > _LATE_NS


class EventTimer:
    """The timer of one event.

    Attributes:
        ran_ns: the processor time of the last sample, since the event was opened.
    """

    def __init__(self, mean_ns: int, usual: UsualDelay) -> None:
        """``mean_ns``: the present period, and the mean of the later ones."""
        self._mean_ns = self._period_ns = mean_ns
        self._usual = usual
        self._samples = 0  # since the last change
        self._changed_ns = 0  # CLOCK_MONOTONIC
        self._is_known = True  # whether the timer was set at ``ran_ns``
        self.ran_ns = 0

    def is_fair(self, time_ns: int, ran_ns: int) -> bool:
        """Tell whether a sample shows a fair moment. The samples come in their order.

        Args:
            time_ns: the time of the sample, CLOCK_MONOTONIC.
            ran_ns: the processor time of the thread, since the event was opened.
        """
        passed_ns, self.ran_ns = ran_ns - self.ran_ns, ran_ns
        if time_ns <= self._changed_ns:
            return False
        self._samples += 1
        if not self._is_known:
            self._is_known = True
            return False
        # A ring without room loses samples.
        periods = max(1, round(passed_ns / self._period_ns))
        return not self._usual.is_exceeded(passed_ns - periods * self._period_ns)

    def next_period(self) -> int:
        """Return the nanoseconds of another period if it is time for one; 0 if it is not."""
        if self._samples < _SAMPLES:
            return 0
        return round(self._mean_ns * random.uniform(*_SPREAD))

    def changed(self, period_ns: int, now_ns: int) -> None:
        """Learn that the timer has another period since some moment, CLOCK_MONOTONIC."""
        self._period_ns, self._changed_ns = period_ns, now_ns
        self._samples, self._is_known = 0, False
