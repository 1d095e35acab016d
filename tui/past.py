"""Where in the past the screen is: steps, jumps, and the player. Nothing of Textual is here.

A live screen is at now, or at a moment of the memory. A replay is at a moment in any case.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from locktop.collector.errors import LocktopError
from locktop.collector.model import ALERTS, Notable, NotableKind
from locktop.collector.recording.moments import (
    EarlierWaits,
    KnowsEarlierWaits,
    Moments,
    TakesMarks,
)
from locktop.tui.views.past_flag import Position, clock_text, span_text

#: Times the speed of the original.
SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
#: The end of the message where no moment is left.
_EARLIER = {
    EarlierWaits.KNOWN: "",
    EarlierWaits.OVERWRITTEN: " Older records were overwritten.",
    EarlierWaits.UNRECORDED: " Earlier waits have no records.",
}
#: A wait that is over has the time of its end; this far before, the wait still went on.
_BEFORE_END_NS = 1_000_000
_SECOND_NS = 1_000_000_000


class Past:
    """The position in the past. All times are nanoseconds since 1970."""

    def __init__(self, moments: Moments | None, is_replay: bool = False) -> None:
        """Args:
        moments: the memory or the recording; None: nothing is kept.
        is_replay: whether there is no now.
        """
        self.moments = moments
        self.is_replay = is_replay
        #: The time of the snapshot on the screen; None: now.
        self.time_ns: int | None = None
        self._notable: Notable | None = None  # the alert or mark that the user jumped to
        self._marks = 0  # that the user made
        self._own_marks: list[Notable] = []  # in a replay, whose file stays as it is
        self._recorded: Sequence[Notable] | None = None  # of a replay, which gets no more
        self._speed = SPEEDS.index(1.0)
        self._clock_ns = 0.0  # of the player
        self.is_playing = False
        if is_replay and (times := self._times()):
            self.time_ns = times[0]

    @property
    def is_active(self) -> bool:
        """Whether the screen shows a moment of the past."""
        return self.time_ns is not None

    @property
    def is_kept(self) -> bool:
        """Whether the memory still has the moment on the screen."""
        times = self._times()
        return self.time_ns is not None and bool(times) and times[0] <= self.time_ns

    @property
    def key_labels(self) -> dict[str, str]:
        """The labels of some keys in the past, by their actions; none at now."""
        if not self.is_active:
            return {}
        return {
            "pause": "pause" if self.is_playing else "play",
            "newest": "last" if self.is_replay else "now",
        }

    def position(self, now_ns: int) -> Position | None:
        """Return what to say of the moment; None at now. ``now_ns``: the time of now."""
        if self.time_ns is None:
            return None
        times = self._times()
        newest_ns = times[-1] if self.is_replay and times else now_ns
        span_ns = newest_ns - times[0] if times else 0
        return Position(
            time_ns=self.time_ns,
            is_replay=self.is_replay,
            newest_ns=newest_ns,
            share=min(1.0, max(0.0, (self.time_ns - times[0]) / span_ns)) if span_ns > 0 else 1.0,
            speed=SPEEDS[self._speed] if self.is_playing else None,
            reason=self._reason(),
        )

    def _reason(self) -> str:
        """Return the present text of the moment that the user jumped to, "" for none.

        The name of a lock may come after the jump. The text says if the moment itself is not kept.
        """
        notable = self._notable
        if notable is None:
            return ""
        if notable.lock and " 0x" in notable.text:
            with contextlib.suppress(LocktopError):
                same = (now for now in self.notables() if _same(now) == _same(notable))
                notable = self._notable = next(same, notable)
        times = self._times()
        if times and notable.time_ns < times[0]:
            return f"Oldest moment; {span_text(times[0] - notable.time_ns)} before: {notable.text}"
        return notable.text

    @property
    def cursor_ns(self) -> int | None:
        """The exact time of the alert or mark that the user jumped to, else of the snapshot."""
        return self._notable.time_ns if self._notable is not None else self.time_ns

    # Each of these returns a message for the user, "" for none.

    def step(self, count: int) -> str:
        """Go that many snapshots forth, or back if negative."""
        times = self._times()
        if not times:
            return self._nothing()
        self.is_playing = False
        index = len(times) if self.time_ns is None else bisect_right(times, self.time_ns)
        wanted = index - 1 + count
        if wanted >= len(times):
            return self.to_newest()
        if wanted < 0:
            self._go(times[0])
            return "This is the oldest moment."
        # At now the screen shows the newest snapshot of all.
        if wanted == len(times) - 1 and not self.is_replay and count > 0:
            return self.to_newest()
        self._go(times[wanted])
        return ""

    def jump(self, direction: int) -> str:
        """Go to the next alert or mark, or with a negative ``direction`` to the one before."""
        times = self._times()
        if not times:
            return self._nothing()
        notables = self.notables()
        keys = [_same(notable) for notable in notables]
        if self._notable is not None and _same(self._notable) in keys:
            wanted = keys.index(_same(self._notable)) + direction
        elif self.time_ns is None:
            wanted = len(notables) - 1 if direction < 0 else len(notables)
        else:
            ends = [notable.time_ns for notable in notables]
            after = bisect_right(ends, self.time_ns)
            wanted = bisect_left(ends, self.time_ns) - 1 if direction < 0 else after
        if not 0 <= wanted < len(notables):
            return self._no_more(direction)
        self.is_playing = False
        return self._to_notable(notables[wanted], times)

    def _no_more(self, direction: int) -> str:
        if direction > 0:
            return "There is no alert or mark after this."
        earlier_waits = EarlierWaits.KNOWN
        if isinstance(self.moments, KnowsEarlierWaits):
            earlier_waits = self.moments.earlier_waits
        return f"There is no alert or mark before this.{_EARLIER[earlier_waits]}"

    def _to_notable(self, notable: Notable, times: Sequence[int]) -> str:
        wanted_ns = notable.time_ns - (_BEFORE_END_NS if notable.kind is NotableKind.WAIT else 0)
        index = bisect_right(times, wanted_ns) - 1
        # An alert of a scan has the time of the scan.
        exact = bisect_left(times, notable.time_ns)
        if exact < len(times) and times[exact] == notable.time_ns:
            index = exact
        self._go(times[max(index, 0)], notable)
        said = f"{clock_text(notable.time_ns)}  {notable.text}"
        if notable.time_ns < times[0]:
            return (
                f"This is the oldest moment. {span_text(times[0] - notable.time_ns)} before: {said}"
            )
        return said

    def go_to(self, text: str) -> str:
        """Go to a time: ``12:03:04``, ``-35s`` (before the newest), ``+10m``, ``50%``."""
        times = self._times()
        if not times:
            return self._nothing()
        assert self.moments is not None
        try:
            # This module takes a part of the start of the screen.
            from locktop.collector.recording import chosen_moment

            wanted_ns = chosen_moment.time_of(self.moments, text.strip())
            notable = chosen_moment.notable_at(self.moments, text.strip())
        except LocktopError as error:
            return f"{error}."
        self.is_playing = False
        if notable is not None:
            self._to_notable(notable, times)
            return ""
        self._go(times[max(0, bisect_right(times, wanted_ns) - 1)])
        if wanted_ns < times[0]:
            return f"The oldest moment is {clock_text(times[0])}."
        if wanted_ns // _SECOND_NS > times[-1] // _SECOND_NS:
            return f"The newest moment is {clock_text(times[-1])}."
        return ""

    def go_to_time(self, time_ns: int) -> str:
        """Go to the newest snapshot at that time or before, else to the oldest."""
        times = self._times()
        if not times:
            return self._nothing()
        self.is_playing = False
        self._go(times[max(0, bisect_right(times, time_ns) - 1)])
        return ""

    def to_oldest(self) -> str:
        """Go to the oldest snapshot."""
        times = self._times()
        if not times:
            return self._nothing()
        self.is_playing = False
        self._go(times[0])
        return ""

    def to_newest(self) -> str:
        """Go to now; in a replay to the last snapshot."""
        self.is_playing = False
        times = self._times()
        if not self.is_replay:
            self.time_ns = self._notable = None
            return ""
        if not times:
            return self._nothing()
        was_there = self.time_ns == times[-1]
        self._go(times[-1])
        return "This is the last moment." if was_there else ""

    def mark(self, now_ns: int) -> str:
        """Mark the moment on the screen; ``now_ns``: the time of now."""
        if self.moments is None:
            return self._nothing()
        time_ns = self.time_ns if self.time_ns is not None else now_ns
        self._marks += 1
        mark = Notable(time_ns=time_ns, kind=NotableKind.MARK, text=f"your mark {self._marks}")
        if isinstance(self.moments, TakesMarks):
            self.moments.add_mark(mark)
        else:
            self._own_marks.append(mark)
        return f"Mark {self._marks} at {clock_text(time_ns)}: {{ and }} jump to it."

    def notables(self) -> list[Notable]:
        """Return the alerts and marks, the oldest first, with the user's marks.

        Raises:
            LocktopError: those of the recording are damaged.
        """
        return sorted(
            [*self._kept_notables(), *self._own_marks], key=lambda notable: notable.time_ns
        )

    def _kept_notables(self) -> Sequence[Notable]:
        if self.moments is None:
            return ()
        if not self.is_replay:
            return self.moments.notables()
        if self._recorded is None:
            self._recorded = self.moments.notables()
        return self._recorded

    @property
    def alerts(self) -> int:
        """How many deadlocks and long waits the memory has; 0 in a replay, which shows none."""
        return 0 if self.is_replay else len(self.known_alerts())

    def known_alerts(self) -> list[Notable]:
        """Return the deadlocks and long waits, the oldest first.

        Raises:
            LocktopError: those of the recording are damaged.
        """
        return [notable for notable in self._kept_notables() if notable.kind in ALERTS]

    # The player

    def play_or_pause(self) -> str:
        """Play from this moment on, or pause."""
        times = self._times()
        if not times:
            return self._nothing()
        if self.is_playing:
            self.is_playing = False
            return ""
        if self.time_ns is None or (self.is_replay and self.time_ns >= times[-1]):
            self._go(times[0])  # from the begin again
        assert self.time_ns is not None
        self._clock_ns = float(self.time_ns)
        self.is_playing = True
        return ""

    def pause(self) -> None:
        """Stay at this moment."""
        self.is_playing = False

    def faster(self, steps: int) -> None:
        """Play that many steps faster, or slower if negative."""
        self._speed = max(0, min(len(SPEEDS) - 1, self._speed + steps))

    @property
    def speed(self) -> float:
        """Times the speed of the original."""
        return SPEEDS[self._speed]

    def tick(self, seconds: float) -> bool:
        """Play for that many ``seconds`` of the user; return whether the moment has changed."""
        times = self._times()
        if not self.is_playing or not times:
            return False
        self._clock_ns += seconds * self.speed * 1e9
        before = self.time_ns
        if self._clock_ns >= times[-1]:
            self.to_newest()
            return self.time_ns != before
        index = max(0, bisect_right(times, self._clock_ns) - 1)
        if times[index] != before:
            self._go(times[index])
        return self.time_ns != before

    def _go(self, time_ns: int, notable: Notable | None = None) -> None:
        self.time_ns, self._notable = time_ns, notable

    def _times(self) -> Sequence[int]:
        return self.moments.times_ns() if self.moments is not None else ()

    def _nothing(self) -> str:
        if self.moments is None:
            return "Nothing is kept: --history 0 says so."
        return "Nothing is kept yet."


def _same(notable: Notable) -> tuple[int, NotableKind, int, int, str]:
    """Return what identifies a moment: the text of an alert may get the name of its lock later."""
    text = notable.text if notable.kind is NotableKind.MARK else ""
    return notable.time_ns, notable.kind, notable.tid, notable.lock, text
