"""Shortened output leaves every character in the style that it had."""

from __future__ import annotations

import random
import re

import pytest

from locktop.tui.terminal.sgr import DEFAULT, Attributes, Shortener, apply, change

SEQUENCE = re.compile(r"\x1b\[([0-9;]*)m")
MOVE = re.compile(r"\x1b\[[0-9;]*H|\r?\n")


def seen(
    data: str, before: Attributes = DEFAULT
) -> tuple[list[tuple[str, Attributes]], Attributes]:
    """Return every character with its attributes, and the attributes at the end.

    A sequence that moves the cursor paints nothing, so it has no attributes. Of several such
    sequences the last counts.
    """
    visible = []
    now, at = before, 0
    while at < len(data):
        match = SEQUENCE.match(data, at)
        move = MOVE.match(data, at)
        if move:
            if "H" in move[0] and visible and MOVE.fullmatch(visible[-1][0]):
                visible.pop()
            visible.append((move[0], DEFAULT))
            at = move.end()
        elif match:
            after = apply(now, match[1])
            assert after is not None
            now, at = after, match.end()
        else:
            visible.append((data[at], now))
            at += 1
    return visible, now


def anything(chance: random.Random) -> str:
    parts = []
    for _ in range(chance.randrange(1, 30)):
        codes = chance.choices(
            [
                *("0", "1", "2", "3", "4", "7", "22", "24", "27", "31", "39", "44", "49", "97"),
                *("100", "38;5;12", "48;5;200", "38;2;1;2;3", "48;2;17;21;27", "48;2;17;21;27", ""),
            ],
            k=chance.randrange(1, 4),
        )
        parts.append(f"\x1b[{';'.join(codes)}m")
        parts.append(chance.choice(["", "word", " ", "線", "\x1b[3;4H", "\r\n", "\x1b[?25l"]))
    return "".join(parts)


@pytest.mark.parametrize("seed", range(200))
def test_every_character_keeps_its_style_over_many_writes(seed: int) -> None:
    chance = random.Random(seed)
    shortener = Shortener()
    plain, short = DEFAULT, DEFAULT
    for _ in range(5):
        data = anything(chance)
        visible, plain = seen(data, plain)
        short_text, short = seen(shortener.shorten(data), short)
        assert short_text == visible
        assert short == plain


def test_output_of_textual_becomes_much_shorter() -> None:
    spans = [("38;2;200;208;218", "name"), ("38;2;232;183;98", "waiting"), ("38;2;1;2;3", "x")]
    row = "".join(f"\x1b[{colour};48;2;17;21;27m{text}\x1b[0m" for colour, text in spans)
    short = Shortener().shorten(row)
    assert short.count("48;2;17;21;27") == 1
    assert len(short) < 0.7 * len(row)


def test_a_style_is_kept_from_row_to_row() -> None:
    row = "\x1b[38;2;1;2;3;48;2;17;21;27mtext\x1b[0m"
    short = Shortener().shorten(f"\x1b[1;1H{row}\r\n\x1b[2;1H{row}\x1b[3;1H{row}")
    assert short.count("48;2;17;21;27") == 1
    assert "\n" not in short
    assert short.endswith("\x1b[3;1Htext\x1b[m")


def test_text_without_styles_is_left_alone() -> None:
    assert Shortener().shorten("\x1b[?1049h\x1b[>1u text") == "\x1b[?1049h\x1b[>1u text"


@pytest.mark.parametrize("odd", ["\x1b[53mover", "\x1b[38;9mx", "\x1b[38;2;1mx", "\x1b[58;5;1mx"])
def test_unknown_sequences_are_sent_as_they_are(odd: str) -> None:
    shortener = Shortener()
    shortener.shorten("\x1b[1mbold")
    assert shortener.shorten(odd) == f"\x1b[0m{odd}\x1b[0m"
    assert shortener.shorten("\x1b[1mbold\x1b[0m") == "\x1b[1mbold\x1b[m"


def test_a_style_change_takes_the_shorter_of_two_sequences() -> None:
    bold = Attributes("31", "44", frozenset({1}))
    assert change(bold, DEFAULT) == "\x1b[m"
    assert change(bold, bold._replace(foreground="32")) == "\x1b[32m"
    assert change(bold, bold._replace(flags=frozenset())) == "\x1b[22m"
    assert change(DEFAULT, bold) == "\x1b[1;31;44m"
