"""The moment of a recording that the text of an option names, and the snapshots there."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day

from msgspec import Struct
from msgspec.structs import replace

from locktop.collector.analysis.figures_since import baseline_of, is_same_program, since
from locktop.collector.analysis.idle.classifier import Classifier
from locktop.collector.analysis.idle.rules import Rules
from locktop.collector.errors import LocktopError
from locktop.collector.model import Notable, NotableKind, Snapshot
from locktop.collector.model.moments import ALERTS
from locktop.collector.recording.moments import Moments

_NS = 1_000_000_000
_UNITS_NS = {"ms": 1_000_000, "s": _NS, "m": 60 * _NS, "h": 3600 * _NS}
_RELATIVE = re.compile(r"([+-])(\d{1,12}(?:\.\d{1,9})?)(ms|s|m|h)")
_SHARE = re.compile(r"(\d{1,3}(?:\.\d{1,6})?) ?%")
_NOTABLE = re.compile(r"(alert|mark)(?::(\d{1,9}))?")
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?")
#: The fraction of the second in an ISO 8601 time.
_FRACTION = re.compile(r":\d\d[.,](\d{1,9})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Span(Struct, frozen=True):
    """A snapshot, and the earlier one from which on its figures are of interest."""

    snapshot: Snapshot
    before: Snapshot | None = None  # None: the figures since the process started

    def figures(self) -> Snapshot:
        """Return the snapshot with the figures of the span alone."""
        return since(self.snapshot, self.before) if self.before is not None else self.snapshot


def classified(snapshot: Snapshot, rules: Rules) -> Snapshot:
    """Return a recorded snapshot with its waits classified anew."""
    return Classifier(rules).classify(snapshot)


class _Given(Struct, frozen=True):
    """The time that a text names: a whole second, if the text has no fraction of one."""

    first_ns: int
    last_ns: int


def time_of(moments: Moments, text: str) -> int:
    """Return the last moment that a text names, nanoseconds since 1970.

    A time before the end (``-1h``) or after the begin may be outside of the recording.

    Args:
        moments: the memory or the recording, with one snapshot at least.
        text: the time as the user gives it.

    Raises:
        LocktopError: the text names no time of the recording.
    """
    times = _times(moments)
    if _RELATIVE.fullmatch(text):
        return _parse_given(moments, text, times[0], times[-1]).last_ns
    return _last_ns(moments, text, 0)


def notable_at(moments: Moments, text: str | None) -> Notable | None:
    """Return the alert or mark that a text names by its number; None for a time.

    Raises:
        LocktopError: there is no alert or mark of this number.
    """
    match = _NOTABLE.fullmatch(text) if text is not None else None
    return _notable(moments, match[1], int(match[2] or 1)) if match else None


def announcement(moments: Moments, text: str | None) -> str:
    """Return what happened at the alert or mark that a text names, in one line; "" for a time."""
    matched = _NOTABLE.fullmatch(text) if text is not None else None
    if matched is None:
        return ""
    word, number = matched[1], int(matched[2] or 1)
    notable, count = _notable(moments, word, number), len(_notables(moments, word))
    when = _local(notable.time_ns).strftime("%Y-%m-%d %H:%M:%S")
    return f"{word} {number} of {count}, {when}: {notable.text}"


def snapshot_at(moments: Moments, text: str | None) -> Snapshot:
    """Return the newest snapshot at a time or before.

    Args:
        moments: the recording.
        text: the time as the user gives it; None for the last snapshot.

    Raises:
        LocktopError: the text names no time of the recording, or the snapshot is damaged.
    """
    return _taken_at(moments, _last_ns(moments, text, _times(moments)[-1]))


def span_between(moments: Moments, begin: str | None, end: str | None) -> Span:
    """Return the snapshots at both ends of a span.

    Args:
        moments: the recording.
        begin: the time as the user gives it; None for the first snapshot.
        end: the same for the end; None for the last snapshot.

    Raises:
        LocktopError: a text names no time of the recording, or the span has one snapshot alone.
    """
    return span_at(moments, *span_ns(moments, begin, end))


def span_at(moments: Moments, first_ns: int, last_ns: int) -> Span:
    """Return the snapshots at both ends of a span, nanoseconds since 1970. See span_between."""
    before, after = _taken_at(moments, first_ns), _taken_at(moments, last_ns)
    if is_same_program(after, before) and before.duration_s >= after.duration_s:
        raise LocktopError(f"this span has one snapshot alone; {_there_are(moments)}")
    return span_of(before, after)


def span_of(before: Snapshot, after: Snapshot) -> Span:
    """Return the span of two scans; with a note if the process executed a program in between."""
    if not is_same_program(after, before):
        note = f"the process executed {after.process.exe} in this span: the figures begin there"
        after = replace(after, notes=(*after.notes, note))
    return Span(snapshot=after, before=baseline_of(after, before))


def times_between(moments: Moments, begin: str | None, end: str | None) -> Sequence[int]:
    """Return the times of the snapshots of a span, nanoseconds since 1970. See span_between."""
    first_ns, last_ns = span_ns(moments, begin, end)
    times = _times(moments)
    return times[max(0, bisect_right(times, first_ns) - 1) : bisect_right(times, last_ns)]


def span_ns(moments: Moments, begin: str | None, end: str | None) -> tuple[int, int]:
    """Return the begin and the end of a span, nanoseconds since 1970. See span_between."""
    times = _times(moments)
    first_ns, last_ns = _last_ns(moments, begin, times[0]), _last_ns(moments, end, times[-1])
    if first_ns > last_ns:
        raise LocktopError(f"the span ends before it begins; {_there_are(moments)}")
    return first_ns, last_ns


def _times(moments: Moments) -> Sequence[int]:
    times = moments.times_ns()
    if not times:
        raise LocktopError("there is no snapshot in this recording")
    return times


def _taken_at(moments: Moments, time_ns: int) -> Snapshot:
    """Return the newest snapshot at a time.

    A scan takes time, and a recording may have the end of it. The user sees when it began.
    """
    times, snapshot = moments.times_ns(), moments.snapshot_at(time_ns)
    number = bisect_right(times, time_ns)
    if number < len(times):
        following = moments.snapshot_at(times[number])
        began = _parse_iso(following.taken_at)
        if began is not None and began.first_ns <= time_ns:
            return following
    return snapshot


def _last_ns(moments: Moments, text: str | None, default_ns: int) -> int:
    """Return the last nanosecond that a text names, within the times of the recording."""
    if text is None:
        return default_ns
    times = moments.times_ns()
    given = _parse_given(moments, text, times[0], times[-1])
    if given.last_ns < times[0] - _NS or given.first_ns > times[-1] + _NS:
        raise LocktopError(f"{text!r} is outside of the recording; {_there_are(moments)}")
    return min(max(given.last_ns, times[0]), times[-1])


def _parse_given(moments: Moments, text: str, begin_ns: int, end_ns: int) -> _Given:
    if match := _RELATIVE.fullmatch(text):
        sign, number, unit = match.groups()
        by_ns = round(float(number) * _UNITS_NS[unit])
        exact_ns = begin_ns + by_ns if sign == "+" else end_ns - by_ns
        return _Given(exact_ns, exact_ns)
    if match := _SHARE.fullmatch(text):
        if float(match[1]) > 100.0:
            raise LocktopError(f"{text!r} is outside of the recording; {_there_are(moments)}")
        exact_ns = begin_ns + round((end_ns - begin_ns) * float(match[1]) / 100)
        return _Given(exact_ns, exact_ns)
    if match := _NOTABLE.fullmatch(text):
        # A long wait may have ended before the first snapshot.
        exact_ns = max(begin_ns, _notable(moments, match[1], int(match[2] or 1)).time_ns)
        return _Given(exact_ns, exact_ns)
    given = _on_clock(text, begin_ns, end_ns) if _CLOCK.fullmatch(text) else _parse_iso(text)
    if given is None:
        raise LocktopError(
            f"{text!r} is no time; 12:03:04, -35s (before the end), +10m, 50%, alert:2 and"
            " 2026-11-23T12:03:04Z are"
        )
    return given


def _notable(moments: Moments, word: str, number: int) -> Notable:
    """Return the moment of this number, from 1 on."""
    notables = _notables(moments, word)
    if not 1 <= number <= len(notables):
        count = (
            f"there are {len(notables)}"
            if len(notables) > 1
            else f"there is {len(notables) or 'none'}"
        )
        raise LocktopError(f"there is no {word} {number}; {count}")
    return notables[number - 1]


def _notables(moments: Moments, word: str) -> list[Notable]:
    kinds = ALERTS if word == "alert" else (NotableKind.MARK,)
    return [notable for notable in moments.notables() if notable.kind in kinds]


def _on_clock(text: str, begin_ns: int, end_ns: int) -> _Given | None:
    """Return a time of day, on the last day of the recording that has it within the recording."""
    hour, minute, second, fraction = _CLOCK.fullmatch(text).groups()  # type: ignore[union-attr]
    try:
        clock = time_of_day(int(hour), int(minute), int(second or 0))
    except ValueError:
        return None
    # 12:03 is that minute.
    unit_ns = 60 * _NS if second is None else _unit_ns(fraction)
    last = _local(end_ns).date()
    for day in (last, last - timedelta(days=1), _local(begin_ns).date()):
        given = _given_on(day, clock, fraction, unit_ns)
        if given.last_ns >= begin_ns - _NS and given.first_ns <= end_ns + _NS:
            return given
    return _given_on(last, clock, fraction, unit_ns)


def _given_on(day: date, clock: time_of_day, fraction: str | None, unit_ns: int) -> _Given:
    first_ns = _ns(datetime.combine(day, clock).astimezone()) + _fraction_ns(fraction)
    return _Given(first_ns, first_ns + unit_ns - 1)


def _parse_iso(text: str) -> _Given | None:
    """Return a time as ISO 8601; without a zone it is local time. None for another text."""
    if len(text) > 40 or ("T" not in text and " " not in text):
        return None
    try:
        moment = datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError, OSError):
        return None
    matched = _FRACTION.search(text)
    fraction = matched[1] if matched else None
    first_ns = _ns(moment.replace(microsecond=0)) + _fraction_ns(fraction)
    return _Given(first_ns, first_ns + _unit_ns(fraction) - 1)


def _fraction_ns(digits: str | None) -> int:
    return int(digits.ljust(9, "0")) if digits else 0


def _unit_ns(digits: str | None) -> int:
    """Return how long the last digit of a time is: a second without a fraction."""
    return int(10 ** (9 - len(digits or "")))


def _ns(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def _local(time_ns: int) -> datetime:
    return datetime.fromtimestamp(time_ns // _NS, UTC).astimezone()


def _there_are(moments: Moments) -> str:
    times = moments.times_ns()
    first, last = (
        _local(time_ns).strftime("%Y-%m-%d %H:%M:%S") for time_ns in (times[0], times[-1])
    )
    return f"there are {len(times)} snapshots, from {first} to {last}"
