"""Threads without rounds, of this program and of others: they take CPUs from the rest."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from locktop.collector.extensions.whatif.analysis.evidence import Evidence, ThreadTimes
from locktop.collector.extensions.whatif.analysis.simulated_program import (
    Do,
    Operation,
    Program,
    ThreadModel,
)

#: A thread with a smaller share of a CPU takes nothing from the others.
_BUSY_SHARE = 0.01
_BUSY_NS = 1_000_000
#: Shares of busy CPUs with which these cause none, and all, of the threads' waits for them.
_IDLE_CPUS, _FULL_CPUS = 0.5, 0.9
#: Threads that wait for a CPU for this share of their time want more CPUs than they get.
_WAITS = 0.1


def busy_threads(
    times: Mapping[int, ThreadTimes], known_tids: Collection[int], span_ns: int
) -> list[ThreadModel]:
    """Return the threads that are not among the known ones and use a CPU.

    Args:
        times: of all threads, by tid.
        known_tids: tids of threads with rounds.
        span_ns: the length of the span, nanoseconds.
    """
    return [
        _busy_thread(tid, thread.cpu_ns / span_ns)
        for tid, thread in times.items()
        if tid not in known_tids and thread.cpu_ns > _BUSY_SHARE * span_ns
    ]


def other_programs(evidence: Evidence) -> list[ThreadModel]:
    """Return threads that stand for other programs, or for what a limit of CPU time forbids.

    Linux prefers threads that sleep much. So a program whose threads hardly wait for CPUs gets the
    CPUs that it wants. If they do wait, the scheduler prefers the others, which keep what they use.
    """
    is_preferred = _waits_for_cpus(_active(evidence), evidence.span_ns)
    return _others(evidence.kept_cpus if is_preferred else evidence.others_cpus, is_preferred)


def change_cpus(program: Program, cpus: int) -> Program:
    """Return a program that may use another number of CPUs.

    With fewer of them, the other programs go on with the CPUs that this program may no longer use.
    If a limit of CPU time holds, the limit is another one.
    """
    left = max(0.0, program.others_cpus - max(0, program.cpus - cpus))
    if program.is_limited and cpus < program.cpus:
        left, cpus = max(program.others_cpus, program.cpus - cpus), program.cpus
    own = [thread for thread in program.threads if thread.tid]
    is_preferred = any(thread.is_other for thread in program.threads)
    return replace(program, cpus=cpus, threads=(*own, *_others(left, is_preferred)))


def _others(cpus: float, is_preferred: bool) -> list[ThreadModel]:
    """Return threads of other programs that use so many CPUs."""
    shares = [1.0] * int(cpus)
    if cpus - int(cpus) > _BUSY_SHARE:
        shares.append(cpus - int(cpus))
    return [_busy_thread(0, share, is_other=is_preferred) for share in shares]


def _active(evidence: Evidence) -> dict[int, ThreadTimes]:
    """Return the times of the threads with records."""
    tids = {record.tid for record in evidence.records}
    return {tid: thread for tid, thread in evidence.times.items() if tid in tids}


def _waits_for_cpus(times: Mapping[int, ThreadTimes], span_ns: int) -> bool:
    queued_ns = sum(thread.queued_ns for thread in times.values())
    return queued_ns > _WAITS * len(times) * span_ns


def _busy_thread(tid: int, share: float, is_other: bool = False) -> ThreadModel:
    sleep_ns = round(_BUSY_NS * max(0.0, 1 / share - 1))
    operations = (Operation(Do.COMPUTE, amount=_BUSY_NS), Operation(Do.SLEEP, amount=sleep_ns))
    return ThreadModel(
        tid=tid,
        group="",
        role=0,
        operations=operations if sleep_ns else operations[:1],
        is_other=is_other,
    )


def busy_share(evidence: Evidence) -> float:
    """Return the share of the CPUs' time that this program used, or did not get, 0 to 1."""
    if not evidence.span_ns:
        return 0.0
    used_cpus = sum(thread.cpu_ns for thread in evidence.times.values()) / evidence.span_ns
    if _waits_for_cpus(_active(evidence), evidence.span_ns):
        used_cpus += evidence.kept_cpus
    return min(1.0, used_cpus / evidence.cpus)


def own_queueing(times: Mapping[int, ThreadTimes], busy: float) -> dict[int, ThreadTimes]:
    """Return the times with the part of the queueing that the simulated CPUs cause.

    Args:
        times: by tid.
        busy: the share of the CPUs' time that was used. If it is small, a woken thread still waits
            a moment for a CPU. The simulated CPUs have no such moment, so it counts as sleep.
    """
    share = min(1.0, max(0.0, (busy - _IDLE_CPUS) / (_FULL_CPUS - _IDLE_CPUS)))
    return {
        tid: replace(thread, queued_ns=round(thread.queued_ns * share))
        for tid, thread in times.items()
    }


def is_starved(times: Mapping[int, ThreadTimes], busy: float, span_ns: int) -> bool:
    """Return whether threads often wait for CPUs while CPUs are free.

    A limit of CPU time that is not known is such a case.

    Args:
        times: of the threads with records, by tid.
        busy: as for own_queueing().
        span_ns: the length of the span, nanoseconds.
    """
    return _waits_for_cpus(
        {
            tid: replace(thread, queued_ns=times[tid].queued_ns - thread.queued_ns)
            for tid, thread in own_queueing(times, busy).items()
        },
        span_ns,
    )
