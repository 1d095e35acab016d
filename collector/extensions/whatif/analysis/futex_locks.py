"""Futexes that are locks of one holder, such as a Rust Mutex, as mutexes of a replay.

A thread that takes a free one makes no system call. So a hold that began without a wait has no
record, or only that of its release, if a thread waited then. The holds of a lock exclude each
other. So where the others fill nearly all of the span, there is no room for those without a record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import zip_longest
from operator import attrgetter, itemgetter

from msgspec.structs import replace

from locktop.collector.extensions.whatif.analysis.evidence import Evidence
from locktop.collector.model import Kind, WaitRecord

#: The least share of the span that the known holds of a lock take, to be replayed.
MIN_HELD = 0.8
#: A woken thread that does not get the lock waits again so soon, nanoseconds.
_AGAIN_NS = 200_000

_BEGAN = attrgetter("began_ns")


class _Event(IntEnum):
    """An event of a lock. At one moment the lower number comes first."""

    WAITS = 0
    SEEN_RELEASE = 1  # of a hold without a known begin
    RELEASED = 2
    GOT = 3


def convert_futexes(evidence: Evidence) -> Evidence:
    """Return the evidence with mutexes in place of such futexes whose holds are known well enough.

    These are no ``futex_locks`` any more. They are ``partly_seen``, with the share of the span
    that the known holds take.
    """
    records_of: dict[int, list[WaitRecord]] = {lock: [] for lock in evidence.timed_futexes}
    for record in evidence.records:
        if record.lock in records_of:
            records_of[record.lock].append(record)
    mutexes: dict[int, list[WaitRecord]] = {}
    shares: dict[int, float] = {}
    for lock, records in records_of.items():
        holds = list(_holds(records, evidence.to_ns))
        share = sum(hold.hold_ns or 0 for hold in holds) / evidence.span_ns
        if share >= MIN_HELD:
            mutexes[lock], shares[lock] = holds, min(1.0, share)
    # Other futexes have releases, too, which are no waits.
    others = [
        record
        for record in evidence.records
        if record.lock not in mutexes and not record.is_release
    ]
    return replace(
        evidence,
        records=sorted([*others, *(hold for own in mutexes.values() for hold in own)], key=_BEGAN),
        open_waits=[
            replace(wait, kind=Kind.MUTEX, site=0) if wait.lock in mutexes else wait
            for wait in evidence.open_waits
        ],
        futex_locks=evidence.futex_locks - mutexes.keys(),
        partly_seen=shares,
    )


def _holds(records: Iterable[WaitRecord], to_ns: int) -> Iterator[WaitRecord]:
    """Yield the acquisitions of a futex by all threads, as records of a mutex.

    Args:
        records: waits with their holds, and releases.
        to_ns: the end of the span, nanoseconds since 1970.
    """
    timed: dict[int, list[WaitRecord]] = {}  # by thread: with the begin of the hold
    releases: list[WaitRecord] = []
    for record in records:
        if record.is_release and record.hold_ns is None:
            releases.append(record)
        elif not record.timed_out:
            timed.setdefault(record.tid, []).append(record)
    for of_thread in timed.values():
        of_thread.sort(key=_BEGAN)
        last_ns = of_thread[-1].got_ns
        for record in _join_waits(of_thread):
            goes_on = record.hold_ns is None and record.got_ns == last_ns
            hold_ns = to_ns - last_ns if goes_on else record.hold_ns
            if hold_ns is not None and hold_ns > 0:
                yield _mutex_record(record, hold_ns)
    waits = [record for of_thread in timed.values() for record in of_thread]
    for release, got_ns in _begins(releases, waits):
        if got_ns < release.end_ns:
            yield _mutex_record(replace(release, began_ns=got_ns), release.end_ns - got_ns)


def _mutex_record(record: WaitRecord, hold_ns: int) -> WaitRecord:
    """Return a record of a mutex. All calls have one site: that of a futex is in the library."""
    return replace(record, kind=Kind.MUTEX, hold_ns=hold_ns, site=0, is_release=False)


def _join_waits(records: Sequence[WaitRecord]) -> Iterator[WaitRecord]:
    """Yield the acquisitions of a thread: the waits in vain belong to the one that follows.

    ``records``: of one thread and one lock, in the order of time.
    """
    began_ns = None
    for record, following in zip_longest(records, records[1:]):
        began_ns = record.began_ns if began_ns is None else began_ns
        if (
            record.hold_ns is None
            and following is not None
            and following.began_ns - record.got_ns < _AGAIN_NS
        ):
            continue
        yield replace(record, began_ns=began_ns, wait_ns=record.got_ns - began_ns)
        began_ns = None


def _begins(
    releases: Iterable[WaitRecord], waits: Iterable[WaitRecord]
) -> Iterator[tuple[WaitRecord, int]]:
    """Yield the releases of holds without a known begin, each with the latest possible one.

    The thread got the lock before the first of the threads that wait at its release began to wait,
    or after the release before.
    """
    events = [(wait.end_ns, _Event.RELEASED, wait) for wait in waits if wait.hold_ns is not None]
    events += [(wait.began_ns, _Event.WAITS, wait) for wait in waits]
    events += [(wait.got_ns, _Event.GOT, wait) for wait in waits]
    events += [(release.end_ns, _Event.SEEN_RELEASE, release) for release in releases]
    events.sort(key=itemgetter(0, 1))
    waiting: dict[int, int] = {}  # by thread, since when
    released_ns = 0
    for time_ns, event, record in events:
        match event:
            case _Event.WAITS:
                waiting[record.tid] = time_ns
            case _Event.GOT:
                waiting.pop(record.tid, None)
            case _:
                if event is _Event.SEEN_RELEASE and waiting:
                    yield record, max(released_ns, min(waiting.values()))
                released_ns = time_ns
