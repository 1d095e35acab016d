"""The time from a key to the screen on a slow link, in the time of that link.

The test carries as many bytes as the link would carry between two snapshots. The bytes that lie
before the end of the effect of a key give the time. So a busy machine changes no figure.
"""

from __future__ import annotations

import pytest
from support.terminal import Terminal

BUDGETS = {32_000: 0.1, 8_000: 1.0}  # seconds from a key to the screen, by bytes a second


class Link:
    """A link of ``rate`` bytes a second between the child and its terminal."""

    def __init__(self, terminal: Terminal, rate: int) -> None:
        self._terminal = terminal
        self._rate = rate
        self._queued = terminal.tell("settle")["queued"]
        terminal.wait_bytes(self._queued)
        terminal.limit()

    def snapshot(self, number: int) -> float:
        """Publish a snapshot; return the seconds to the next one."""
        answer = self._terminal.tell(f"tick {number}")
        self._queued = int(answer["queued"])
        return float(answer["interval_s"])

    def pass_time(self, seconds: float) -> None:
        """Carry what the link carries in this time."""
        waiting = self._queued - self._terminal.received
        self._terminal.carry(min(waiting, int(self._rate * seconds)))

    def key(self, key: str) -> float:
        """Press a key; return the seconds until all of its effect is at the terminal."""
        self._terminal.press(key)
        self._queued = int(self._terminal.tell("settle")["queued"])
        return (self._queued - self._terminal.received) / self._rate


@pytest.mark.parametrize("rate", BUDGETS)
def test_a_key_in_the_list_paints_soon(
    rate: int, terminal: Terminal, record_property: pytest.RecordProperty
) -> None:
    link = Link(terminal, rate)
    seconds = []
    for number in range(1, 21):
        interval_s = link.snapshot(number)
        link.pass_time(interval_s * number / 21)  # the key comes at any moment
        seconds.append(link.key("j" if number % 3 else "k"))
        link.pass_time(interval_s * (1 - number / 21))
    record_property(f"key to paint at {rate} bytes/s", [round(one, 3) for one in seconds])
    assert max(seconds) <= BUDGETS[rate]
