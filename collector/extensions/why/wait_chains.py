"""Follows the waits from a process to their root."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Set

from locktop.collector.extensions.why.model import (
    ANY_THREAD,
    Awaited,
    Chain,
    ChainStep,
    HostThread,
    StuckSets,
    WhyVerdict,
)
from locktop.collector.extensions.why.wait_scan import WaitScan


def chain(pid: int, scan: WaitScan, stuck: StuckSets) -> Chain:
    """Return the way from a process to the root of its wait."""
    tids = [thread.tid for thread in scan.host.threads(pid)]
    for verdict, stuck_tids in (
        (WhyVerdict.DEADLOCK, stuck.certain),
        (WhyVerdict.POSSIBLE, stuck.possible),
    ):
        inside = [tid for tid in tids if tid in stuck_tids]
        if inside:
            steps, back_to = _follow(_most_telling(inside, scan), scan, stuck_tids)
            doubts = dict.fromkeys(_doubts(steps, scan, stuck))
            return Chain(pid, verdict, steps, back_to, tuple(filter(None, doubts)))
    waiting = [tid for tid in tids if tid in scan.awaited]
    if not waiting:
        steps = tuple(ChainStep(scan.threads[tid], None) for tid in tids[:1])
        return Chain(pid, WhyVerdict.NONE, steps)
    start = _most_telling(waiting, scan)
    steps, back_to = _follow(start, scan, frozenset())
    return Chain(pid, WhyVerdict.WAITS, steps, back_to)


def _doubts(steps: Iterable[ChainStep], scan: WaitScan, stuck: StuckSets) -> Iterator[str]:
    for step in steps:
        if step.awaited is None:
            continue
        yield step.awaited.doubt
        yield stuck.doubts.get(step.thread.tid, "")
        for pid in step.awaited.sharers:
            if any(thread.tid not in stuck.possible for thread in scan.host.threads(pid)):
                name = scan.host.name(pid)
                yield f"{name} has other threads, which may end the wait of {step.thread.tid}"


def chain_of_thread(tid: int, scan: WaitScan) -> Chain:
    """Return the way from one thread to where its wait ends, without a verdict on deadlocks."""
    thread = scan.threads[tid]
    steps, back_to = _follow(tid, scan, frozenset())
    verdict = WhyVerdict.WAITS if tid in scan.awaited else WhyVerdict.NONE
    return Chain(thread.pid, verdict, steps, back_to)


def _most_telling(tids: Iterable[int], scan: WaitScan) -> int:
    """Return the thread whose wait says most about a process: one of many that are alike."""
    every = list(tids)
    alike = Counter(scan.awaited[tid].does for tid in every)
    return min(
        every,
        key=lambda tid: (
            _rank(scan.awaited[tid]),
            -alike[scan.awaited[tid].does],
            -scan.awaited[tid].duration_s,
            tid,
        ),
    )


def _rank(awaited: Awaited) -> int:
    """Return how little a wait says: one for another thread of the process says least."""
    if awaited.role == ANY_THREAD:
        return 3
    if awaited.providers and not awaited.other_end:
        return 0
    return 1 if awaited.providers else 2


def _follow(start: int, scan: WaitScan, stuck: Set[int]) -> tuple[tuple[ChainStep, ...], int]:
    """Return the steps from a thread to the end of its chain, and where a circle closes.

    Threads of a process that do the same are one step.
    """
    order: dict[tuple[int, str], int] = {}
    steps: list[ChainStep] = []
    tid: int | None = start
    while tid is not None:
        thread, awaited = scan.threads[tid], scan.awaited.get(tid)
        key = thread.pid, awaited.does if awaited is not None else str(tid)
        if key in order:
            return tuple(steps), order[key]
        order[key] = len(steps)
        steps.append(ChainStep(thread, awaited, _count_alike(thread, awaited, scan)))
        tid = _next(awaited, scan, stuck)
    return tuple(steps), -1


def _count_alike(thread: HostThread, awaited: Awaited | None, scan: WaitScan) -> int:
    if awaited is None:
        return 1
    return sum(
        other.tid in scan.awaited and scan.awaited[other.tid].does == awaited.does
        for other in scan.host.threads(thread.pid)
    )


def _next(awaited: Awaited | None, scan: WaitScan, stuck: Set[int]) -> int | None:
    """Return the provider with which a chain goes on; None if it ends."""
    if awaited is None:
        return None
    providers = [tid for tid in awaited.providers if tid in scan.threads]
    inside = [tid for tid in providers if tid in stuck]
    if inside:
        return _most_telling(inside, scan)
    free = [tid for tid in providers if tid not in scan.awaited]
    if free or not providers:
        return min(free, default=None)
    return _most_telling(providers, scan)
