"""Unobserved waits in sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from locktop.collector.model import Frame, Snapshot, UnobservedWait
from locktop.collector.render.words.units import duration

_MAX_GROUPS = 20
_MAX_TIDS = 8
_HEADING = "THREADS IN UNOBSERVED WAITS, longest first"


def what(waits: Sequence[UnobservedWait]) -> str:
    """Return what threads of one group wait for: "OpenMP lock, futex 0x7f3a5c001230".

    With the name of the variable: "g_slots (OpenMP lock)". Without a known futex: the type, else
    "an unknown object".
    """
    first = waits[0]
    if not first.address:
        return first.type or "an unknown object"
    count = len({wait.address for wait in waits})
    if count == 1 and first.name:
        return f"{first.name} ({first.type or 'futex'})"
    many = "one futex each" if count == len(waits) else f"{count} futexes"
    futex = f"futex {first.address:#x}" if count == 1 else many
    return f"{first.type}, {futex}" if first.type else futex


def verdict(wait: UnobservedWait) -> str:
    """Return whether the wait is idle, and the rule that decided."""
    if wait.idle is None:
        return "not known whether for work"
    return f"{idle_verdict(wait.idle)}, idle rule {wait.why}"


def idle_verdict(idle: bool) -> str:
    """Return as what a wait counts."""
    return "counts as a wait for work" if idle else "counts as a wait for a lock"


def lines(
    snapshot: Snapshot,
    name: Callable[[int], str],
    stack: Callable[[Sequence[Frame]], Iterator[str]],
) -> Iterator[str]:
    """Yield the section of the text report; waits at one source location are one entry.

    Waits for a lock are left out: the section of the waiting threads has them.

    Args:
        snapshot: the scan.
        name: returns the name of a thread by its tid.
        stack: yields the lines of frames.
    """
    waiting = {
        thread.tid
        for thread in snapshot.threads
        if thread.waiting_for is not None and not thread.waiting_for.idle
    }
    groups = _groups(wait for wait in snapshot.unobserved_waits if wait.tid not in waiting)
    if groups:
        yield _HEADING
    for waits in groups[:_MAX_GROUPS]:
        durations_s = [wait.duration_s for wait in waits if wait.duration_s]
        since = f" for at least {duration(max(durations_s))}" if durations_s else ""
        yield f"  {_who(waits, name)}{since}: {what(waits)} ({verdict(waits[0])})"
        yield from stack(snapshot.stacks.get(waits[0].stack, ()))
    unlisted = len(waiting.intersection(snapshot.unobserved_waiters))
    left = len(snapshot.unobserved_waiters) - unlisted - sum(map(len, groups[:_MAX_GROUPS]))
    if groups and left > 0:
        yield f"  and {left} more"


def _groups(waits: Iterable[UnobservedWait]) -> list[list[UnobservedWait]]:
    """Return the waits by stack; idle waits come last."""
    groups: dict[object, list[UnobservedWait]] = {}
    for wait in waits:
        # Two waits without a stack may have different source locations.
        alike = wait.stack, wait.type, wait.idle, wait.why
        groups.setdefault(alike if wait.stack else wait.tid, []).append(wait)
    return sorted(
        groups.values(), key=lambda group: (group[0].idle is True, -max(map(_age, group)))
    )


def _age(wait: UnobservedWait) -> float:
    return wait.duration_s or 0.0


def _who(waits: Sequence[UnobservedWait], name: Callable[[int], str]) -> str:
    if len(waits) == 1:
        return name(waits[0].tid)
    listed = ", ".join(str(wait.tid) for wait in waits[:_MAX_TIDS])
    more = f" and {len(waits) - _MAX_TIDS} more" if len(waits) > _MAX_TIDS else ""
    return f"{len(waits)} threads ({listed}{more})"
