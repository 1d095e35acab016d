"""Waits summed up by stack, as the formats of profilers have them: whole nanoseconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from locktop.collector.analysis import divided_waits
from locktop.collector.extensions.export.trace_parts import TracePart
from locktop.collector.model import Frame, Lock, Snapshot

#: A smaller part of a lock's wait without a stack is no wait.
_MIN_WITHOUT_STACK = 0.01


class SampleWeight(StrEnum):
    """Whose stacks a profile has."""

    WAIT = "wait"  # those of the threads that waited
    BLAME = "blame"  # those of the threads that had the lock


class WaitSample(Struct, frozen=True):
    """The waits of one stack for one lock."""

    frames: tuple[Frame, ...]  # innermost first
    lock: str
    kind: str
    count: int
    ns: int
    thread: str = ""  # "": the figures of all threads are one sum


def samples_of_parts(parts: Iterable[TracePart], with_idle: bool) -> list[WaitSample]:
    """Return the waits of a trace by thread, lock and stack, the longest first.

    Args:
        parts: those of the trace.
        with_idle: also waits for work.
    """
    sums: dict[tuple[int, int, int], list[int]] = {}
    last_parts: dict[tuple[int, int, int], TracePart] = {}
    for part in parts:
        for wait in part.waits:
            if wait.idle and not with_idle:
                continue
            key = wait.record.tid, wait.record.lock, wait.record.stack
            total = sums.setdefault(key, [0, 0])
            total[0] += 1
            total[1] += wait.record.wait_ns
            last_parts[key] = part
    locks = {
        id(part): {lock.id: lock for lock in part.snapshot.locks} for part in last_parts.values()
    }
    samples = []
    for key, (count, ns) in sums.items():
        part, (tid, lock_id, stack) = last_parts[key], key
        lock = locks[id(part)].get(lock_id)
        samples.append(
            WaitSample(
                frames=part.frames(stack),
                lock=lock.name if lock is not None else f"lock {lock_id}",
                kind=str(lock.kind) if lock is not None else "",
                count=count,
                ns=ns,
                thread=part.threads.get(tid, "") or f"thread {tid}",
            )
        )
    return sorted(samples, key=lambda sample: -sample.ns)


def samples_of_counters(snapshot: Snapshot, with_idle: bool) -> list[WaitSample]:
    """Return the waits of a snapshot by lock and stack, the longest first.

    The counters have no threads. Waits without a known stack have no frames.
    """
    samples = []
    for lock in snapshot.locks:
        samples += _samples_of_lock(lock, snapshot, with_idle)
    return sorted(samples, key=lambda sample: -sample.ns)


def _samples_of_lock(lock: Lock, snapshot: Snapshot, with_idle: bool) -> list[WaitSample]:
    whole_ns = _nanoseconds(lock.wait_s if with_idle else lock.wait_s - lock.idle_s)
    samples = []
    for entry in lock.wait_stacks:
        if entry.idle and not with_idle:
            continue
        parts = divided_waits.parts(entry)
        # The parts of divided waits have no counts: the first one gets the sum.
        counts = [entry.count, *[0] * (len(parts) - 1)]
        pieces = _edges(part.wait_s for part in parts)
        for part, count, ns in zip(parts, counts, pieces, strict=True):
            samples.append(_sample(lock, snapshot.stacks.get(part.stack, ()), count, ns))
    left_ns = whole_ns - sum(sample.ns for sample in samples)
    if not samples or left_ns > whole_ns * _MIN_WITHOUT_STACK:
        counted = lock.contended - sum(entry.count for entry in lock.wait_stacks)
        samples.append(_sample(lock, (), max(counted, 0), max(left_ns, 0)))
    else:  # the counters are read one after the other: a small rest belongs to these stacks
        longest = max(range(len(samples)), key=lambda index: samples[index].ns)
        samples[longest] = replace(samples[longest], ns=samples[longest].ns + left_ns)
    return [sample for sample in samples if sample.ns > 0]


def _edges(seconds: Iterable[float]) -> Iterator[int]:
    """Yield nanoseconds whose sum is that of the seconds, rounded once."""
    total_s, before_ns = 0.0, 0
    for part_s in seconds:
        total_s += part_s
        yield _nanoseconds(total_s) - before_ns
        before_ns = _nanoseconds(total_s)


def samples_of_blame(snapshot: Snapshot, with_idle: bool) -> list[WaitSample]:
    """Return how long others waited for each holder, by lock and the call that took the lock.

    The frames are that call, and the thread is the holder. A part without a known holder has none.
    """
    names = {thread.tid: thread.name for thread in snapshot.threads}
    samples = []
    for lock in snapshot.locks:
        if lock.idle and not with_idle:
            continue
        for blame in lock.blame:
            frame = snapshot.sites.get(blame.site)
            frames = (frame,) if frame is not None else ()
            name = blame.holder_label or names.get(blame.tid, "") or f"thread {blame.tid}"
            if blame.wait_s > 0:
                samples.append(_sample(lock, frames, 0, _nanoseconds(blame.wait_s), name))
    return sorted(samples, key=lambda sample: -sample.ns)


def _sample(
    lock: Lock, frames: tuple[Frame, ...], count: int, ns: int, thread: str = ""
) -> WaitSample:
    return WaitSample(
        frames=frames, lock=lock.name, kind=str(lock.kind), count=count, ns=ns, thread=thread
    )


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)
