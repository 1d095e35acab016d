"""How long the holds that are not timed have lasted at least."""

from __future__ import annotations

from collections.abc import Mapping

from locktop.collector.analysis.hold_bounds import HoldBounds, HoldKey
from locktop.collector.linux.threads import KernelThreads
from locktop.collector.model import Draft


class HoldLengths:
    """Bounds the holds of one process in each scan."""

    def __init__(self, tasks: KernelThreads) -> None:
        self._tasks = tasks
        self._bounds = HoldBounds()

    def annotate(
        self,
        draft: Draft,
        read_at_s: float,
        is_first: bool,
        proved_s: Mapping[HoldKey, float],
    ) -> None:
        """Fill in how long the holds of ``draft`` have lasted at least.

        Args:
            draft: the draft, with the holders of semaphores.
            read_at_s: when the holds were read, monotonic clock.
            is_first: whether this is the first scan of a program.
            proved_s: see HoldBounds.annotate().
        """
        tasks = self._tasks

        def asleep_s(tid: int) -> float:
            begin = tasks.sleep_begin(tid)
            return max(read_at_s - begin.since_s, 0.0) if begin is not None else 0.0

        if is_first or draft.level == "dormant":  # a dormant library observes no release
            self._bounds = HoldBounds()
        if draft.level != "dormant":
            self._bounds.annotate(draft, asleep_s, proved_s)

    def may_have_slept(self, tid: int, duration_s: float, read_at_s: float) -> bool:
        """Return whether a thread may have slept so long at a time of the monotonic clock."""
        begin = self._tasks.sleep_begin(tid)
        return begin is not None and (
            begin.is_lower_bound or read_at_s - begin.since_s >= duration_s
        )
