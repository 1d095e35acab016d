"""Sentences about the holders of a lock during a wait; the largest share comes first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from locktop.collector.analysis.timeline_holds import holders_during
from locktop.collector.model import (
    ActivityState,
    HoldersSeen,
    HoldShare,
    Kind,
    TimedWait,
    TimeLine,
    WaitHolders,
    WaitRecord,
)
from locktop.collector.model.kinds import TIMED_BY_WAKES_KINDS, WOKEN_KINDS
from locktop.collector.render.words import readers, units
from locktop.collector.render.words.activity import asleep_in
from locktop.collector.render.words.snapshot_index import SnapshotIndex

#: Threads with names behind the first one.
_MAX_OTHERS = 3
#: The holders of a futex: a thread that takes a free lock makes no system call. Nobody owns a
#: semaphore either.
_BY_WAKES = "as wakes of the waiters show, of holds that began with a wait"
_BY_POSTS = "as posts while threads waited show, of holds that began with a wait"
#: A smaller part of the wait needs no words: a woken thread takes time to get the lock.
_SOME = 0.05


def holder_sentences(wait: TimedWait, line: TimeLine, index: SnapshotIndex) -> list[str]:
    """Return who had the lock during a wait; nothing if no hold of that time is known."""
    holders = holders_during(wait, line)
    return list(sentences(holders, wait.record, index)) if holders is not None else []


def sentences(holders: WaitHolders, wait: WaitRecord, index: SnapshotIndex) -> Iterator[str]:
    """Yield who had the lock for how long, and the part of the wait without a known hold.

    Args:
        holders: the holders.
        wait: the wait.
        index: the names.
    """
    if not holders.shares:
        yield from _seen_words(holders.seen, index)
        return
    first, *others = holders.shares
    if holders.unrecorded_ns > first.held_ns:
        if holders.seen is None:
            yield _unrecorded_words(holders, wait.holder, index)
        yield from _seen_words(holders.seen, index)
        yield f"{index.thread_name(first.tid)} had it for {_share(first, holders)}"
    else:
        whole = units.duration(holders.wait_ns / 1e9)
        part = " in this span" if holders.is_part else ""
        yield (
            f"{index.thread_name(first.tid)} had it for {_share(first, holders)}"
            f" of the {whole}{part}{_location(first, wait.kind, index)}"
        )
    if others:
        yield _others(first, others, holders, index)
    if wait.kind in WOKEN_KINDS:
        yield _BY_WAKES if wait.kind in TIMED_BY_WAKES_KINDS else _BY_POSTS
    # A lower bound says already that more may be missing.
    if (
        not first.is_lower_bound
        and _SOME * holders.wait_ns < holders.unrecorded_ns <= first.held_ns
    ):
        rest = units.duration(holders.unrecorded_ns / 1e9)
        yield f"no hold is known for the other {rest}"


def _seen_words(seen: HoldersSeen | None, index: SnapshotIndex) -> Iterator[str]:
    """Yield whom the scans show as holders, where single holds are not known."""
    if seen is None:
        return
    who = "readers" if seen.are_readers else "other threads"
    scans = units.counted(seen.scans, "scan")
    share = f"{seen.held} of {scans}"
    if seen.held >= seen.scans:
        share = f"each of {scans}" if seen.scans > 1 else "the only scan"
    names = [index.thread_name(tid) for tid in seen.tids[:_MAX_OTHERS]]
    if more := seen.tids[_MAX_OTHERS:]:
        names.append(units.counted(len(more), "more thread"))
    yield f"{who} had it in {share}: {', '.join(names) or readers.UNKNOWN}"


def _unrecorded_words(holders: WaitHolders, began_with: int, index: SnapshotIndex) -> str:
    rest, whole = (units.duration(ns / 1e9) for ns in (holders.unrecorded_ns, holders.wait_ns))
    part = " in this span" if holders.is_part else ""
    text = f"no hold is known for {rest} of the {whole}{part}"
    if began_with and all(share.tid != began_with for share in holders.shares):
        text = f"{index.thread_name(began_with)} had it when the wait began; {text}"
    return text


def _share(share: HoldShare, holders: WaitHolders) -> str:
    bound = "about " if holders.is_estimate else "at least " if share.is_lower_bound else ""
    return f"{bound}{units.duration(share.held_ns / 1e9)}"


def _location(share: HoldShare, kind: Kind, index: SnapshotIndex) -> str:
    """Return where the thread was in the hold, else where it took the lock."""
    now = share.activity
    if now is not None and now.doing is ActivityState.BLOCKED and (now.what or now.call):
        return f", {asleep_in(now)}"
    # The site of a wait for a futex is the system call.
    site = index.stack_top(share.stack) if kind in TIMED_BY_WAKES_KINDS else index.site(share.site)
    return f", taken in {site}" if site else ""


def _others(
    first: HoldShare, others: Sequence[HoldShare], holders: WaitHolders, index: SnapshotIndex
) -> str:
    named = [
        f"{index.thread_name(share.tid)} {_share(share, holders)}" for share in others[:_MAX_OTHERS]
    ]
    text = ", ".join(named)
    more = others[_MAX_OTHERS:]
    if more:
        text += f", {units.counted(len(more), 'more thread')}"
    together = first.is_shared and any(share.is_shared for share in others)
    return f"beside it {text}" if together else f"then {text}"
