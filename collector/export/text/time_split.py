"""Where the time of threads went, as a table for a page of plain text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from locktop.collector.model import Thread, TimeSplit

#: The fields of TimeSplit as they are called, in the order of the table.
PARTS = {
    "cpu": "on cpu",
    "runnable": "wants cpu",
    "contended": "lock",
    "idle": "for work",
    "disk": "disk",
    "other": "other",
}
#: What there is to say where the kernel or the library does not count.
WHY_UNKNOWN = {
    "runnable": "the kernel does not count the time in the queue for a CPU",
    "contended": "the library does not count waits",
    "disk": "the kernel does not count waits for disks (sysctl kernel.task_delayacct=1 makes it,"
    " for threads that begin later)",
}
_MAX_THREADS = 15
#: A thread that does less beside waiting for work is not told of.
_SOMETHING = 0.01


def lines(threads: Iterable[Thread], span_s: str, name: Callable[[int], str]) -> Iterator[str]:
    """Return the table of the threads that did not only wait for work, the busiest first.
    ``span_s``: the interval in words; ``name``: what to call a thread, by tid."""
    told = [(thread.time, thread) for thread in threads if thread.time is not None]
    busy = [(time, thread) for time, thread in told if _busy(time) + time.other >= _SOMETHING]
    busy.sort(key=lambda one: (-round(_busy(one[0]), 2), -one[0].cpu, one[1].tid))
    shown = [one for one in busy if _busy(one[0]) >= _SOMETHING][:_MAX_THREADS]
    if not shown:
        return
    yield f"WHERE THE TIME OF THREADS WENT in the last {span_s}, the busiest first"
    yield "  " + "  ".join(PARTS.values()) + "  thread"
    for time, thread in shown:
        cells = (cell(time, part).rjust(len(title)) for part, title in PARTS.items())
        yield "  " + "  ".join(cells) + f"  {name(thread.tid)}"
    left = len(busy) - len(shown)
    if left:
        yield f"  and {left} more"
    yield from (f"  ?: {why}" for why in reasons(time for time, _ in shown))


def cell(time: TimeSplit, part: str) -> str:
    """Return a share of the split as text: "12%", "?" where nothing is known of it."""
    share: float = getattr(time, part)
    if part in time.unknown and not share:
        return "?"
    return "<1%" if 0.0 < share < 0.005 else f"{share:.0%}"


def reasons(times: Iterable[TimeSplit]) -> list[str]:
    """Return why of some parts not all is known, each once."""
    unknown = {name for time in times for name in time.unknown}
    return [why for name, why in WHY_UNKNOWN.items() if name in unknown]


def _busy(time: TimeSplit) -> float:
    return time.cpu + time.runnable + time.contended + time.disk
