"""A section of the text report: the threads of other processes that hold locks."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.render.text.context import ReportContext
from locktop.collector.render.words import elsewhere


def holders(context: ReportContext) -> Iterator[str]:
    """Yield one entry for each lock that a thread of another process holds."""
    others = context.threads_elsewhere
    pairs = [
        (lock, others[tid])
        for lock in context.snapshot.locks
        for tid in lock.holders
        if tid in others
    ]
    if pairs:
        yield from ("", f"HELD BY OTHER PROCESSES {context.when}")
    for lock, thread in pairs:
        yield f"  {elsewhere.full_name(thread)} holds {context.lock(lock.id)}"
        if advice := elsewhere.advice(thread, lock):
            yield f"    {advice}"
