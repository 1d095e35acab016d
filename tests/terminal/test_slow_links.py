"""The time from a key to the screen on a slow link, in the time of that link.

The test carries as many bytes as the link would carry between two snapshots. The bytes that lie
before the end of the effect of a key give the time. So a busy machine changes no figure.
"""

from __future__ import annotations

import pytest
from support.emulator import Kind
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
RATE = 32_000
#: The terminal at the other end of an SSH connection.
TERMINALS: dict[str, tuple[Kind, dict[str, str]]] = {
    "xterm": (Kind.XTERM, {}),
    "tmux before 3.5": (Kind.TMUX_3_3, {"TERM": "tmux-256color"}),
    "tmux before 3.5 by its first name": (Kind.TMUX_3_3, {"TERM": "screen", "COLORTERM": ""}),
    "screen": (Kind.SCREEN, {"TERM": "screen-256color", "COLORTERM": ""}),
    "repeats nothing": (Kind.MOSH, {}),
}
#: Seconds at 32 kB/s where a terminal that repeats nothing misses the budget. Each cell of a line
#: or of a bar has three bytes there. The name "screen" tells nothing of erasing in colour.
LONGER = {
    "screen": {"the lists again": 0.125, "close the help": 0.12},
    "repeats nothing": {"the lists again": 0.125},
}


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


@pytest.mark.parametrize("name", TERMINALS)
def test_an_action_paints_soon(name: str, record_property: pytest.RecordProperty) -> None:
    kind, variables = TERMINALS[name]
    sent = {}
    with opened_terminal(kind=kind, variables=variables) as terminal:
        terminal.frame("tick 1")
        terminal.frame("same")
        link = Link(terminal, RATE)
        for action, key in ACTIONS.items():
            sent[action] = link.key(key) * RATE
            link.pass_time(60)
    record_property(f"bytes of each action, {name}", sent)
    for rate, budget in BUDGETS.items():
        longer = LONGER.get(name, {}) if rate == RATE else {}
        for action, number in sent.items():
            assert 0 < number / rate <= longer.get(action, budget), (rate, action)
