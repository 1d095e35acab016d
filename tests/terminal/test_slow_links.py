"""The time from a key to the screen on a slow link, in the time of that link.

The test carries as many bytes as the link would carry between two snapshots. The bytes that lie
before the end of the effect of a key give the time. So a busy machine changes no figure.
"""

from __future__ import annotations

import pytest
from support.terminal import Terminal, opened_terminal

BUDGETS = {32_000: 0.1, 8_000: 1.0}  # seconds from a key to the screen, by bytes a second
ESCAPE = "\x1b[27u"
#: Actions and their keys. Each begins where the one before ended.
ACTIONS = {
    "sort by the next column": "s", "the other order": "S", "the next panel": "\t",
    "the panel after it": "\t", "the first panel again": "\t", "open the help": "?",
    "a page of the help": "\x1b[6~", "close the help": ESCAPE, "open the filter": "/",
    "a letter of the filter": "3", "a second letter": "8", "close the filter": ESCAPE,
    "open the list of actions": "\x10", "close the list of actions": ESCAPE,
    "the details alone": "z", "the lists again": "z",
}  # fmt: skip
#: Seconds at 32 kB/s on a terminal that repeats no character, where these miss the budget. Each
#: cell of a line or of a bar has three bytes there.
LONGER_WITHOUT = {"the lists again": 0.12}


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
        before = self._settled()
        self._terminal.press(key)
        while (now := self._settled()) == before:
            pass  # the key has not been read yet
        while (later := self._settled()) != now:
            now = later
        self._queued = now
        return (self._queued - self._terminal.received) / self._rate

    def _settled(self) -> int:
        """The bytes of all output so far."""
        return int(self._terminal.tell("settle")["queued"])


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


@pytest.mark.parametrize("repeats", [True, False], ids=["repeats", "repeats nothing"])
@pytest.mark.parametrize("rate", BUDGETS)
def test_an_action_paints_soon(
    rate: int, repeats: bool, record_property: pytest.RecordProperty
) -> None:
    with opened_terminal(repeats=repeats) as terminal:
        terminal.frame("tick 1")
        terminal.frame("same")
        link = Link(terminal, rate)
        seconds = {}
        for action, key in ACTIONS.items():
            seconds[action] = link.key(key)
            link.pass_time(60)
    record_property(f"action to paint at {rate} bytes/s, {repeats=}", seconds)
    longer = LONGER_WITHOUT if rate == 32_000 and not repeats else {}
    for action, needed in seconds.items():
        assert 0 < needed <= longer.get(action, BUDGETS[rate]), action
