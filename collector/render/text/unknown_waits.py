"""The waits of 10 s or more for locks whose holders are not known, with their stacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from locktop.collector.model import Frame, Snapshot
from locktop.collector.render.words import verdict
from locktop.collector.render.words.source_location import full_location
from locktop.collector.render.words.units import lasting

_MAX_WAITS = 20
_MAX_FRAMES = 30


def lines(snapshot: Snapshot) -> Iterator[str]:
    """Yield the lines, which are not wrapped; none without such waits."""
    names = {lock.id: lock.name for lock in snapshot.locks}
    waiters = verdict.unknown_waiters(snapshot)
    for thread, wait in waiters[:_MAX_WAITS]:
        duration = lasting(wait.duration_s, wait.is_lower_bound)
        yield ""
        name = names.get(wait.lock) or str(wait.kind)
        yield f"  {thread.name} ({thread.tid}) waits for {name} for {duration}"
        yield from _stack(snapshot.stacks.get(wait.stack, ()))
    if len(waiters) > _MAX_WAITS:
        yield from ("", f"  and {len(waiters) - _MAX_WAITS} threads more")


def _stack(frames: Sequence[Frame]) -> Iterator[str]:
    for number, frame in enumerate(frames[:_MAX_FRAMES]):
        yield f"    {number} {full_location(frame)}{' (inlined)' * frame.inlined}"
    if len(frames) > _MAX_FRAMES:
        yield f"    and {len(frames) - _MAX_FRAMES} frames more"
