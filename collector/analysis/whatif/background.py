"""Threads without rounds, of this program and of others: they take CPUs from the rest."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import ceil

from msgspec.structs import replace

from locktop.collector.analysis.whatif.evidence import ThreadTimes
from locktop.collector.analysis.whatif.simulated_program import Do, Operation, ThreadModel

#: A thread with a smaller share of a CPU takes nothing from the others.
_BUSY_SHARE = 0.01
_BUSY_NS = 1_000_000
#: Shares of the CPUs with which a program causes none, and all, of its threads' waits for them.
_IDLE_CPUS, _FULL_CPUS = 0.5, 0.9
#: The share of their time for which computing threads are ready, and the share of it without a CPU.
_COMPUTING, _STARVED = 0.1, 0.2


def busy_threads(
    times: Mapping[int, ThreadTimes], known: Collection[int], span_ns: int
) -> list[ThreadModel]:
    """Return the threads that are not among the known ones and use a CPU.

    Args:
        times: of all threads, by tid.
        known: tids of threads with rounds.
        span_ns: the length of the span, nanoseconds.
    """
    return [
        _busy_thread(tid, one.cpu_ns / span_ns)
        for tid, one in times.items()
        if tid not in known and one.cpu_ns > _BUSY_SHARE * span_ns
    ]


def other_programs(cpus: float) -> list[ThreadModel]:
    """Return threads that stand for other programs, which use so many CPUs."""
    if cpus < _BUSY_SHARE:
        return []
    count = ceil(cpus)
    return [_busy_thread(0, cpus / count) for _ in range(count)]


def _busy_thread(tid: int, share: float) -> ThreadModel:
    sleep_ns = round(_BUSY_NS * max(0.0, 1 / share - 1))
    operations = (Operation(Do.COMPUTE, amount=_BUSY_NS), Operation(Do.SLEEP, amount=sleep_ns))
    return ThreadModel(tid=tid, group="", operations=operations if sleep_ns else operations[:1])


def is_starved(times: Mapping[int, ThreadTimes], cpus: int, span_ns: int) -> bool:
    """Return whether threads that compute much wait for CPUs that other programs have."""
    ready_ns = sum(one.cpu_ns + one.queued_ns for one in times.values())
    own = own_queueing(times, cpus * span_ns).values()
    others_ns = sum(one.queued_ns for one in times.values()) - sum(one.queued_ns for one in own)
    computes = ready_ns > _COMPUTING * len(times) * span_ns
    return computes and others_ns > _STARVED * ready_ns


def own_queueing(times: Mapping[int, ThreadTimes], whole_ns: int) -> dict[int, ThreadTimes]:
    """Return the times with the part of the queueing that the program causes itself.

    If it needs few CPUs, its threads wait for those of other programs. A change does not end that,
    so such a wait counts as sleep.
    """
    busy = sum(one.cpu_ns for one in times.values()) / whole_ns if whole_ns else 0.0
    share = min(1.0, max(0.0, (busy - _IDLE_CPUS) / (_FULL_CPUS - _IDLE_CPUS)))
    return {tid: replace(one, queued_ns=round(one.queued_ns * share)) for tid, one in times.items()}
