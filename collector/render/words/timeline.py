"""A time line as characters: one for each cell, an axis, and times of day.

A character tells the share of its cell by its form, never by a colour alone. Any wait in contention
is visible: it decides the character of its cell, however short it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from string import ascii_lowercase

from locktop.collector.analysis.timeline import Cell, longest_lock, state_sums
from locktop.collector.model import LaneState, Window

#: The part of a cell in contention, in eighths. The first one is any wait, the last one all time.
BLOCKS = "▁▂▃▄▅▆▇█"
#: At least half of the cell, and less than half of it.
HOLDS, HOLDS_PART = "═", "~"
#: The signs for most of a cell, without waits and holds.
OTHERS: Mapping[LaneState, str] = {
    LaneState.RUNNING: "─",
    LaneState.IDLE: "·",
    LaneState.SLEEPING: "-",
    LaneState.UNKNOWN: " ",
}
LEGEND = "▁▄█ waits (height: part of the time)  ═ holds ~ in part  ─ runs  · idle  - sleeps"
#: The same letters mean these of the locks; further locks have no letter of their own.
LETTERS = ascii_lowercase
OTHER_LOCK = "*"

#: Densities of a heat map. The first one is no wait at all.
SHADES = " ·░▒▓█"

_MIN_TICK_CELLS = 13
#: A recording of a stranger may name any time, and Python's dates end with the year 9999.
_LAST_NS = 200_000_000_000 * 10**9
_TICK_NS = sorted(
    [digit * 10**power for power in range(10) for digit in (1, 2, 5)]
    + [seconds * 10**9 for seconds in (15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400)]
)


def glyph(cell: Cell, cell_ns: int) -> tuple[str, LaneState]:
    """Return the character of a cell, and the state that decides it.

    Args:
        cell: nanoseconds by state and lock.
        cell_ns: the length of the cell.
    """
    sums = state_sums(cell)
    waited = sums.get(LaneState.WAITING, 0)
    if waited:
        return BLOCKS[min(7, 7 * waited // max(1, cell_ns))], LaneState.WAITING
    held = sums.get(LaneState.HOLDING, 0)
    if held:
        return HOLDS if 2 * held >= cell_ns else HOLDS_PART, LaneState.HOLDING
    state = max(sums, key=lambda lane_state: sums[lane_state], default=LaneState.UNKNOWN)
    return OTHERS[state], state


def lock_letter(cell: Cell, cell_ns: int, letters: Mapping[int, str]) -> tuple[str, LaneState]:
    """Return the same with the letter of the lock that the thread waited for most.

    The letter is large if the thread waited for at least half of the cell.
    """
    sign, state = glyph(cell, cell_ns)
    if state is not LaneState.WAITING:
        return sign, state
    waited = state_sums(cell)[LaneState.WAITING]
    letter = letters.get(longest_lock(cell), OTHER_LOCK)
    return letter.upper() if 2 * waited >= cell_ns else letter, state


def letters_of(locks: Sequence[int]) -> dict[int, str]:
    """Return a letter for each of the first locks."""
    return dict(zip(locks, LETTERS, strict=False))


def shade(part: float) -> str:
    """Return the density for a part 0..1 of the largest figure; " " for none alone."""
    if part <= 0:
        return SHADES[0]
    return SHADES[min(len(SHADES) - 1, 1 + int(part * (len(SHADES) - 1)))]


def time_of_day(time_ns: int, digits: int = 3) -> str:
    """Return the local time of day, with up to nine decimals: ``19:31:05.120``."""
    seconds, rest = divmod(min(max(time_ns, 0), _LAST_NS), 10**9)
    text = datetime.fromtimestamp(seconds).astimezone().strftime("%H:%M:%S")
    return f"{text}.{rest:09d}"[: 9 + digits] if digits else text


def time_zone(time_ns: int) -> str:
    """Return the name of the local time zone at a moment: ``UTC``, ``CET``."""
    seconds = min(max(time_ns, 0), _LAST_NS) // 10**9
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Z")


def digits_for(cell_ns: int) -> int:
    """Return how many decimals of a second tell two cells apart."""
    for digits in range(0, 9, 3):
        if cell_ns >= 10 ** (9 - digits):
            return digits
    return 9


def axis(window: Window) -> str:
    """Return the times below each other's cells: ``│19:31:05     │19:31:10``."""
    cell_ns = max(1, window.span_ns // max(1, window.count))
    tick = next(
        (tick_ns for tick_ns in _TICK_NS if tick_ns >= _MIN_TICK_CELLS * cell_ns), _TICK_NS[-1]
    )
    digits = digits_for(tick)
    cells = [" "] * window.count
    time_ns = -(-window.from_ns // tick) * tick
    free = 0
    while time_ns < window.to_ns:
        cell = window.cell_at(time_ns)
        label = "│" + (
            time_of_day(time_ns, digits) if digits < 6 else "+" + time_of_day(time_ns, 9)[9:]
        )
        if cell >= free:
            room = label[: window.count - cell] if window.count - cell < len(label) else label
            text = room if room == label else "│"
            cells[cell : cell + len(text)] = text
            free = cell + len(label) + 1
        time_ns += tick
    return "".join(cells)
