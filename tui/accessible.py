"""The screen for a screen reader: lines that are only appended, each "Header: value".

The first lines have all facts. Later lines have the facts that changed, at most once in PAUSE_S
seconds, a deadlock at once. Enter prints all facts again.
"""

from __future__ import annotations

import select
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from locktop.collector.model import ALERTS, Lock, Notable, NotableKind, Snapshot, ThreadState
from locktop.collector.recording.memory_keeper import MemoryKeeper
from locktop.collector.render.words import hang
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.render.words.verdict import long_hang
from locktop.tui.views.banner import banner
from locktop.tui.views.cells import counted, plain
from locktop.tui.views.headline import most_waited_now
from locktop.tui.views.lock_list import holder_activity_span
from locktop.tui.views.past_alerts import count_text, how_often
from locktop.tui.views.past_flag import clock_text
from locktop.tui.views.styled_line import line_text

if TYPE_CHECKING:
    from locktop.collector.recording.history import History
    from locktop.collector.render.snapshot_signal import SnapshotSignal
    from locktop.collector.sources.attach import Source

#: Seconds between two reports of changed facts.
PAUSE_S = 5.0
#: A wait is told anew when it passes one of these limits, in seconds.
_LIMITS = ((60.0, "over a minute"), (10.0, "over 10 seconds"), (1.0, "over 1 second"))
_ALWAYS = "Deadlock"
_WIDE = 1000


class AlertsSoFar(Struct, frozen=True):
    """The deadlocks and long waits of all scans so far."""

    recent: Sequence[Notable] = ()  # those of the memory, at least the last one; the oldest first
    forgotten: Mapping[NotableKind, int] = {}  # how many earlier ones there were

    @property
    def counts(self) -> Mapping[NotableKind, int]:
        """How many there were of each kind."""
        return Counter(self.forgotten) + Counter(alert.kind for alert in self.recent)


_NONE_SO_FAR = AlertsSoFar()


def facts(index: SnapshotIndex, alerts: AlertsSoFar = _NONE_SO_FAR) -> dict[str, str]:
    """Return the facts of a snapshot by header, the most important first.

    Args:
        index: the snapshot.
        alerts: the deadlocks and long waits so far.
    """
    snapshot = index.snapshot
    waiting = [thread for thread in snapshot.threads if thread.state is ThreadState.WAITING]
    entries = {
        "Process": f"{snapshot.process.comm} {snapshot.process.pid}",
        "State": _state(index),
        _ALWAYS: _deadlock(index),
        "Threads that wait": f"{len(waiting)}",
    }
    worst = most_waited_now(index)
    entries |= _lock_facts(index, worst) if worst is not None else {"Worst lock": "none"}
    entries["Alerts"] = _alerts(alerts)
    entries["Level"] = snapshot.level
    entries["Notes"] = "; ".join(snapshot.notes) or "none"
    return {header: plain(text) for header, text in entries.items()}


def _alerts(alerts: AlertsSoFar) -> str:
    """Return how many and how often; the time of day, because an age changes at each scan."""
    if not alerts.recent:
        return "none"
    last = alerts.recent[-1]
    often = how_often(alerts.recent)
    return (
        f"{count_text(alerts.counts)}{often}, the last at {clock_text(last.time_ns)}: {last.text}"
    )


def _state(index: SnapshotIndex) -> str:
    if index.snapshot.ended:
        return "ended"
    return "stopped by a signal or a debugger" if index.snapshot.stopped else "runs"


def _deadlock(index: SnapshotIndex) -> str:
    deadlocks = index.snapshot.deadlocks
    if not deadlocks:
        return hang_words(index)
    # The title of the banner has a time, which would be a change at each scan.
    _, *edges = banner(index, sys.maxsize, _WIDE)
    certain = "certain" if any(deadlock.certain for deadlock in deadlocks) else "possible"
    return "; ".join([certain, *(line_text(edge).strip() for edge in edges)])


def hang_words(index: SnapshotIndex) -> str:
    """Return that all threads wait for each other, "none" otherwise."""
    whole = long_hang(index.snapshot)
    if whole is None:
        return "none"
    word = "the process hangs" if whole.certain else "the process may hang"
    return "; ".join([word, *map(hang.part, hang.groups(index.snapshot))])


def _lock_facts(index: SnapshotIndex, lock: Lock) -> dict[str, str]:
    waits = [
        thread.waiting_for.duration_s
        for thread in index.waiting
        if thread.waiting_for is not None and thread.waiting_for.lock == lock.id
    ]
    longest = max(waits, default=0.0)
    named = index.holder_of(lock)
    holders = "not known"
    if named is not None:
        holders = f"{named.adverb}{index.holders(named.tids, lock.id)}"
    site = index.held_site(lock.holders[0], lock.id) if lock.holders else ""
    return {
        "Worst lock": index.lock_name(lock.id),
        "Waiters": counted(len(waits), "thread"),
        "Longest wait": next((text for limit, text in _LIMITS if longest > limit), "short"),
        "Held by": holders + (f" at {site}" if site else ""),
        "Holder now": holder_activity_span(index, lock)[0] or "not known",
    }


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """Return the facts that are new or different. A fact that is gone is "none"."""
    gone = {header: "none" for header in before if header not in now}
    return gone | {header: text for header, text in now.items() if before.get(header) != text}


class AlertLog:
    """Counts the alerts of all scans so far. The memory forgets, and a count must not shrink."""

    def __init__(self, source: Source | None, history: History) -> None:
        """``source``: the process; None: all scans come from elsewhere."""
        self._keeper = MemoryKeeper(source, history)
        self._history = history
        self._recent: dict[tuple[int, int], Notable] = {}  # by time and lock
        self._forgotten: Counter[NotableKind] = Counter()

    def add(self, snapshot: Snapshot) -> AlertsSoFar:
        """Take a scan; return the alerts."""
        self._keeper.keep(snapshot)
        return self.count(self._history.notables())

    def count(self, notables: Sequence[Notable]) -> AlertsSoFar:
        """Return all alerts so far.

        Args:
            notables: what the memory has now, the oldest first.
        """
        now = {(alert.time_ns, alert.lock): alert for alert in notables if alert.kind in ALERTS}
        gone = [alert for key, alert in self._recent.items() if key not in now]
        if gone and not now:
            last = gone.pop()  # the last alert is told for as long as there is no other
            now[last.time_ns, last.lock] = last
        self._forgotten.update(alert.kind for alert in gone)
        self._recent = now
        return AlertsSoFar(tuple(now.values()), self._forgotten)

    def close(self) -> None:
        """Read no more records of waits."""
        self._keeper.close()


def watch(
    source: Source,
    interval_s: float,
    say: Callable[[str], None],
    enter_pressed: Callable[[float], bool],
    on_demand: SnapshotSignal | None = None,
    alerts: AlertLog | None = None,
) -> None:
    """Print facts until the process ends.

    Args:
        source: the process.
        interval_s: seconds between scans.
        say: prints a line.
        enter_pressed: waits for so many seconds, and returns whether the user pressed Enter.
        on_demand: saves a snapshot at a signal.
        alerts: finds the alerts; None: they are not told.
    """
    said: dict[str, str] = {}
    said_at, wants_all = float("-inf"), True
    while True:
        index = SnapshotIndex(source.scan(resolve=True))
        if on_demand is not None and (line := on_demand.save(index.snapshot)):
            say(f"Signal: {line}")
        now = facts(index, alerts.add(index.snapshot) if alerts is not None else _NONE_SO_FAR)
        different = now if wants_all else changed(said, now)
        is_due = time.monotonic() - said_at >= PAUSE_S or _ALWAYS in different
        if different and (is_due or wants_all or index.snapshot.ended):
            for header, text in different.items():
                say(f"{header}: {text}")
            said, said_at = now, time.monotonic()
        if index.snapshot.ended:
            return
        wants_all = enter_pressed(interval_s)


def run(source: Source, rate: float, history: History | None = None) -> int:
    """Watch on the standard streams; return the exit status.

    Args:
        source: the process.
        rate: scans a second.
        history: a memory for the alerts; None: alerts are not told.
    """
    from locktop.collector.render.snapshot_signal import SnapshotSignal

    on_demand = SnapshotSignal(lambda: None)  # the next scan comes soon
    on_demand.install()
    print("Keys: Enter prints all facts, Control C ends.", flush=True)
    alerts = AlertLog(source, history) if history is not None else None
    try:
        watch(source, 1.0 / rate, _print, _enter_within, on_demand, alerts)
    finally:
        if alerts is not None:
            alerts.close()
    return 0


def _print(line: str) -> None:
    print(line, flush=True)


def _enter_within(seconds: float) -> bool:
    if not sys.stdin.isatty():
        time.sleep(seconds)
        return False
    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    if not ready:
        return False
    if not sys.stdin.readline():  # the end of the input: it would be ready for ever
        time.sleep(seconds)
        return False
    return True
