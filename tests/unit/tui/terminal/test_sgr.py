"""A change of style takes the fewest bytes, and gives the wanted style."""

from __future__ import annotations

import random

import pytest
from support.seeds import seeds

from locktop.tui.terminal.sgr import DEFAULT, Attributes, apply, blank, change

CODES = (
    "0", "1", "2", "3", "4", "7", "22", "24", "27", "31", "39", "44", "49", "97", "100",
    "38;5;12", "48;5;200", "38;2;1;2;3", "48;2;17;21;27", "",
)  # fmt: skip


def test_a_change_gives_the_wanted_style() -> None:
    for seed in seeds(50):
        chance = random.Random(seed)
        style = DEFAULT
        for _ in range(100):
            wanted = apply(style, ";".join(chance.choices(CODES, k=chance.randrange(1, 4))))
            assert wanted is not None
            if wanted != style:
                sequence = change(style, wanted)
                assert apply(style, sequence[2:-1]) == wanted
            style = wanted


@pytest.mark.parametrize("odd", ["53", "38;9", "38;2;1", "58;5;1"])
def test_an_unknown_parameter_gives_no_style(odd: str) -> None:
    assert apply(DEFAULT, odd) is None


def test_a_style_change_takes_the_shorter_of_two_sequences() -> None:
    bold = Attributes("31", "44", frozenset({1}))
    assert change(bold, DEFAULT) == "\x1b[m"
    assert change(bold, bold._replace(foreground="32")) == "\x1b[32m"
    assert change(bold, bold._replace(flags=frozenset())) == "\x1b[22m"
    assert change(DEFAULT, bold) == "\x1b[1;31;44m"


def test_a_blank_shows_its_background_and_its_lines() -> None:
    bold = Attributes("31", "44", frozenset({1}))
    assert blank(bold) == Attributes("", "44")
    underlined = bold._replace(flags=frozenset({1, 4}))
    assert blank(underlined) == underlined
