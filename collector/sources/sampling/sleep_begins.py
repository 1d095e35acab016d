"""The begin of waits that went on before the sampling began, as far as the kernel tells."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from locktop.collector.linux.threads import KernelThreads
from locktop.collector.model.kinds import CONTENTION_KINDS
from locktop.collector.sources.sampling.sampled_wait import SampledWait
from locktop.collector.sources.sampling.sampler import Sample, Sampler

Key = tuple[int, int]  # SampledWait.life and .seq


class SleepBegins:
    """Since when threads wait that already waited in the first sample.

    Samples show a wait for as long as locktop looks, and the scheduler knows more of a sleep. Each
    such sleep is queried once, some 60 us each.
    """

    def __init__(self, tasks: KernelThreads, sampler: Sampler) -> None:
        self._tasks = tasks
        self._sampler = sampler
        self._begins: dict[Key, float] = {}  # time.monotonic()
        self._unknown: set[Key] = set()  # queried in vain

    @property
    def is_complete(self) -> bool:
        """Whether the kernel told the begin of each sleep that was queried."""
        return not self._unknown

    def since(self, wait: SampledWait) -> float:
        """Return the moment since which the thread waits at least: time.monotonic()."""
        return min(self._begins.get((wait.life, wait.seq), wait.since), wait.whole_since)

    def query(
        self,
        waits: Iterable[SampledWait],
        samples: Mapping[int, Sample],
        first_at: float,
        budget_s: float,
    ) -> None:
        """Query the kernel about the waits of a sample, those for locks first.

        Args:
            waits: the waits of the last sample.
            samples: the last sample.
            first_at: the time of the first sample, time.monotonic().
            budget_s: seconds. Later queries take the rest.
        """
        until = time.monotonic() + budget_s
        older = {(wait.life, wait.seq): wait for wait in waits if wait.since <= first_at}
        self._begins = {key: self._begins[key] for key in self._begins.keys() & older.keys()}
        self._unknown &= older.keys()
        new = [
            item
            for item in older.items()
            if item[0] not in self._begins
            and item[0] not in self._unknown
            and samples[item[1].tid].seq == item[1].seq  # else it has slept anew in the same wait
        ]
        new.sort(key=lambda item: item[1].sync_object.kind not in CONTENTION_KINDS)
        for key, wait in new:
            if time.monotonic() > until:
                break
            began = self._tasks.asleep_since(wait.tid)
            if began is None:
                self._unknown.add(key)
            elif self._sampler.still_sleeps(samples[wait.tid]):
                self._begins[key] = min(began, wait.since)
