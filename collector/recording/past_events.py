"""The recorded waits that a kept snapshot of the screen needs.

A scan has the latest 300 waits, and they would be three quarters of its packed bytes. The details
of a lock or a thread list the newest waits alone, with three digits. The ring records that the
memory keeps beside the snapshots have all waits, exactly.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from locktop.collector.model import Event

#: As many of a lock or a thread as its details list.
MAX_EVENTS = 12
#: Durations have so many bits: four digits. The others are random and cannot be packed.
_BITS = 12
#: The age of a wait has so many bits behind the point: a millionth of a second.
_AGE_STEPS = 1 << 20


def newest_of_each(events: Sequence[Event]) -> tuple[Event, ...]:
    """Return the newest events of each lock and of each thread, in their order, rounded.

    Args:
        events: the newest first.
    """
    locks: Counter[int] = Counter()
    threads: Counter[int] = Counter()
    newest = []
    for event in events:
        if locks[event.lock] < MAX_EVENTS or threads[event.tid] < MAX_EVENTS:
            newest.append(_round_times(event))
        locks[event.lock] += 1
        threads[event.tid] += 1
    return tuple(newest)


def _round_times(event: Event) -> Event:
    return replace(
        event,
        ago_s=round(event.ago_s * _AGE_STEPS) / _AGE_STEPS,
        wait_s=_rounded_duration(event.wait_s),
        hold_s=None if event.hold_s is None else _rounded_duration(event.hold_s),
    )


def _rounded_duration(duration_s: float) -> float:
    part, exponent = math.frexp(duration_s)
    return math.ldexp(round(part * (1 << _BITS)), exponent - _BITS)
