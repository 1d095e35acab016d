"""Gives a snapshot of the past the names that later snapshots of the same program know."""

from __future__ import annotations

import contextlib
import re
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from locktop.collector.errors import LocktopError
from locktop.collector.model import Notable, Snapshot
from locktop.collector.recording.known_names import KnownNames, LoadedCode, is_provisional
from locktop.collector.sanitize import clean

#: So many snapshots after a moment are searched for its names, beside the newest one. Names come
#: a few scans after the first request.
_MAX_SEARCHED = 20
_MAX_TEXTS, _MAX_TEXT = 1000, 200
#: Programs, and states of their libraries, whose names are kept.
_MAX_PROGRAMS = 4


class TimedScan(Struct, frozen=True):
    """A scan, and its time in nanoseconds since 1970."""

    time_ns: int
    snapshot: Snapshot


class _AlertText(Struct, frozen=True):
    """The present text of an alert, and the times of the newest scan at the tries."""

    notable: Notable
    first_ns: int  # 0: there was no scan then
    last_ns: int


class LaterNames:
    """The names of one past. Any thread may use it."""

    def __init__(
        self,
        times_ns: Callable[[], Sequence[int]],
        read: Callable[[int], Snapshot],
        newest: Callable[[], TimedScan | None] = lambda: None,
    ) -> None:
        """Args:
        times_ns: returns the times of all snapshots.
        read: returns the snapshot of a time as it is, or raises LocktopError.
        newest: returns a newer scan than the last snapshot, if there is one.
        """
        self._times_ns = times_ns
        self._read = read
        self._newest = newest
        self._programs: dict[LoadedCode, KnownNames] = {}
        self._texts: dict[Notable, _AlertText] = {}  # by moment, as it was kept
        self._lock = threading.Lock()

    def apply(self, snapshot: Snapshot, time_ns: int) -> Snapshot:
        """Return a snapshot with all names that are known by now.

        Args:
            snapshot: as it was kept.
            time_ns: when it was kept, nanoseconds since 1970.
        """
        with self._lock:
            names = self._names_of(LoadedCode.from_snapshot(snapshot))
            with contextlib.suppress(LocktopError):  # what follows is damaged
                self._search(names, snapshot, time_ns)
            return names.apply(snapshot)

    def _names_of(self, program: LoadedCode) -> KnownNames:
        names = self._programs.get(program)
        if names is None:
            names = self._programs[program] = KnownNames()
            if len(self._programs) > _MAX_PROGRAMS:
                del self._programs[next(iter(self._programs))]
        return names

    def _search(self, names: KnownNames, snapshot: Snapshot, time_ns: int) -> None:
        """Search the newest snapshot, which knows most names, and then those after a moment."""
        times, newest = self._times_ns(), self._newest()
        newest_ns = newest.time_ns if newest is not None else times[-1]
        due = wanted = names.wanted(snapshot, newest_ns)
        if not due:
            return
        program = LoadedCode.from_snapshot(snapshot)
        first = max(1, bisect_right(times, time_ns))  # before the oldest, the oldest counts
        if newest_ns > times[first - 1]:
            last = newest.snapshot if newest is not None else self._read(newest_ns)
            if LoadedCode.from_snapshot(last) == program:
                wanted = names.learn(last, newest_ns, wanted)
        for later_ns in times[first : first + _MAX_SEARCHED]:
            unsearched = names.unsearched(wanted, later_ns)
            if not unsearched:
                continue
            later = self._read(later_ns)
            if LoadedCode.from_snapshot(later) != program:
                break  # from here on, addresses may mean something else
            wanted = wanted - unsearched | names.learn(later, later_ns, unsearched)
        names.note_search(due, newest_ns)

    # ---- texts of alerts ----

    def reword(self, notables: Iterable[Notable]) -> list[Notable]:
        """Return moments whose texts name their locks, as far as the names are known by now."""
        return [
            self._reword(notable) if notable.lock and " 0x" in notable.text else notable
            for notable in notables
        ]

    def _reword(self, notable: Notable) -> Notable:
        newest = self._newest()
        newest_ns = newest.time_ns if newest is not None else 0
        text = self._texts.get(notable)
        # The screen asks at each scan, and a try reads two snapshots. So tries get rare. An alert
        # may be far older than the first try, and a busy machine reads names for minutes.
        if text is not None and (
            text.notable != notable
            or newest_ns <= text.last_ns
            or newest_ns - text.last_ns < text.last_ns - text.first_ns
        ):
            return text.notable
        named = notable
        with contextlib.suppress(LocktopError):
            named = self._named_text(notable)
        first_ns = (text.first_ns if text is not None else 0) or newest_ns
        self._texts[notable] = _AlertText(named, first_ns=first_ns, last_ns=newest_ns)
        if len(self._texts) > _MAX_TEXTS:
            del self._texts[next(iter(self._texts))]
        return named

    def _named_text(self, notable: Notable) -> Notable:
        """Read the snapshot of a moment, or the next one, which may be the first with the lock."""
        times = self._times_ns()
        first = max(1, bisect_right(times, notable.time_ns))
        for time_ns in times[first - 1 : first + 1]:
            locks = self.apply(self._read(time_ns), time_ns).locks
            lock = next((lock for lock in locks if lock.id == notable.lock), None)
            if lock is not None and not is_provisional(lock):
                # The text may have a name that lacked its line: a function before the address.
                text, address = notable.text, f"{lock.address:#x}"
                before = re.search(rf" for (?:(?! for ).)*? {address}\b", text)
                if before is not None:
                    text = f"{text[: before.start()]} for {lock.name}{text[before.end() :]}"
                return replace(notable, text=clean(text, _MAX_TEXT))
        return notable
