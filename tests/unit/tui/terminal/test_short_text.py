"""Repetitions and drawn lines show the same cells in fewer bytes."""

from __future__ import annotations

import random

import pytest
from support.emulator import Emulator, Kind, differences
from support.seeds import seeds

from locktop.tui.terminal.description import Abilities
from locktop.tui.terminal.short_text import ASCII_SET, shorten

ABILITIES = {
    Kind.XTERM: Abilities(repeats=True, repeats_ascii=True, draws_lines=True),
    Kind.TMUX_3_3: Abilities(repeats_ascii=True, draws_lines=True),
    Kind.SCREEN: Abilities(draws_lines=True),
    Kind.MOSH: Abilities(),
}
WIDTH, HEIGHT = 100, 20


@pytest.mark.parametrize("kind", ABILITIES)
def test_the_cells_are_the_same(kind: Kind) -> None:
    for seed in seeds(20):
        chance = random.Random(seed)
        reduced, wanted = Emulator(WIDTH, HEIGHT, kind), Emulator(WIDTH, HEIGHT, kind)
        for _ in range(HEIGHT - 1):  # all rows are still there at the end
            parts = [
                chance.choice("─█ qBb0(") * chance.choice((1, 3, 4, 5, 6, 9)) for _ in range(10)
            ]
            text = "".join(parts)
            short = shorten(text, ABILITIES[kind])
            assert len(short.encode()) <= len(text.encode())
            # The characters come in any pieces.
            at = chance.randrange(len(short.encode()) + 1)
            reduced.feed(short.encode()[:at])
            reduced.feed(short.encode()[at:] + b"\r\n")
            wanted.feed(f"{text}\r\n".encode())
            assert not reduced.draws
        assert differences(reduced, wanted) == []


@pytest.mark.parametrize(
    ("kind", "short"),
    [
        (Kind.XTERM, "─\x1b[9b =\x1b[6b"),
        (Kind.TMUX_3_3, "\x1b(0q\x1b[9b\x1b(B =\x1b[6b"),
        (Kind.SCREEN, "\x1b(0qqqqqqqqqq\x1b(B ======="),
        (Kind.MOSH, "────────── ======="),
    ],
)
def test_the_shortest_text_that_the_terminal_shows(kind: Kind, short: str) -> None:
    assert shorten(f"{'─' * 10} {'=' * 7}", ABILITIES[kind]) == short


def test_a_short_line_is_not_drawn() -> None:
    known = Abilities(draws_lines=True)
    assert shorten("───", known) == "───"
    assert shorten("────", known) == f"\x1b(0qqqq{ASCII_SET}"
    assert shorten("━━━━━━━━━ █████████", known) == "━━━━━━━━━ █████████", "the set has only ─"
