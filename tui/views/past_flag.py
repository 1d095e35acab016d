"""The flag of the first line that tells which moment of the past is on the screen."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import Struct

from locktop.tui.views.styled_line import Line, make_line

_NS = 1_000_000_000


class Position(Struct, frozen=True):
    """The moment on the screen, for the first line."""

    time_ns: int
    is_replay: bool
    newest_ns: int  # now, or the end of the recording
    share: float  # how much of the recording lies before the moment, 0..1
    speed: float | None  # of the player, None while it does not play
    reason: str = ""  # why the user is here: the text of an alert or a mark


def past_flag(position: Position) -> Line:
    """The flag: the time, how far back, and the speed of the player."""
    parts = [
        "REPLAY" if position.is_replay else "PAST",
        clock_text(position.time_ns),
        f"{100 * position.share:.0f}%"
        if position.is_replay
        else f"-{span_text(position.newest_ns - position.time_ns)}",
    ]
    if position.speed is not None:
        parts.append(f"{position.speed:g}x")
    return make_line((f" {'  '.join(parts)} ", "flag"), " ")


def clock_text(time_ns: int) -> str:
    """The local time of day of a moment, nanoseconds since 1970: ``12:03:04``."""
    try:
        return datetime.fromtimestamp(time_ns // _NS, UTC).astimezone().strftime("%H:%M:%S")
    except (OverflowError, OSError, ValueError):
        return "?"


def span_text(span_ns: int) -> str:
    """A span in whole seconds: ``35 s``, ``12 min 05 s``, ``3 h 05 min``."""
    seconds = max(0, round(span_ns / _NS))
    minutes, hours = seconds // 60, seconds // 3600
    if hours:
        return f"{hours} h {minutes % 60:02d} min"
    return f"{minutes} min {seconds % 60:02d} s" if minutes else f"{seconds} s"
