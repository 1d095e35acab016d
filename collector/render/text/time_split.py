"""A section of the text report: a table of where the time of threads went."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from locktop.collector.model import Thread, TimeSplit

#: The headings of the fields of TimeSplit, in the order of the table.
PARTS = {
    "cpu": "on cpu",
    "runnable": "wants cpu",
    "contended": "lock",
    "idle": "for work",
    "disk": "disk",
    "other": "other",
}
#: Why a share is not known: the kernel or the library does not count it.
WHY_UNKNOWN = {
    "runnable": "the kernel does not count the time in the queue for a CPU",
    "contended": "the library does not count waits",
    "disk": "the kernel does not count waits for disks (sysctl kernel.task_delayacct=1 makes it,"
    " for threads that begin later)",
}
_MAX_THREADS = 15
#: The table leaves out a thread with a smaller share beside waits for work.
_SOMETHING = 0.01


def lines(threads: Iterable[Thread], span_s: str, name: Callable[[int], str]) -> Iterator[str]:
    """Yield the table of the threads that did more than wait for work, the busiest first.

    Args:
        threads: the threads of a snapshot.
        span_s: the interval as text.
        name: returns the name of a thread by its tid.
    """
    timed = [(thread.time, thread) for thread in threads if thread.time is not None]
    busy = [(time, thread) for time, thread in timed if _busy(time) + time.other >= _SOMETHING]
    busy.sort(key=lambda pair: (-round(_busy(pair[0]), 2), -pair[0].cpu, pair[1].tid))
    chosen = [pair for pair in busy if _busy(pair[0]) >= _SOMETHING][:_MAX_THREADS]
    if not chosen:
        return
    yield f"WHERE THE TIME OF THREADS WENT in the last {span_s}, the busiest first"
    yield "  " + "  ".join(PARTS.values()) + "  thread"
    for time, thread in chosen:
        cells = (cell(time, part).rjust(len(title)) for part, title in PARTS.items())
        yield "  " + "  ".join(cells) + f"  {name(thread.tid)}"
    left = len(busy) - len(chosen)
    if left:
        yield f"  and {left} more"
    yield from (f"  ?: {why}" for why in reasons(time for time, _ in chosen))


def cell(time: TimeSplit, part: str) -> str:
    """Return a share of the split as text: "12%", "?" if the share is not known."""
    share: float = getattr(time, part)
    if part in time.unknown and not share:
        return "?"
    return "<1%" if 0.0 < share < 0.005 else f"{share:.0%}"


def reasons(times: Iterable[TimeSplit]) -> list[str]:
    """Return why shares are not fully known, each reason once."""
    unknown = {name for time in times for name in time.unknown}
    return [why for name, why in WHY_UNKNOWN.items() if name in unknown]


def _busy(time: TimeSplit) -> float:
    return time.cpu + time.runnable + time.contended + time.disk
