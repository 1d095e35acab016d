"""Suggests the word that a mistyped one was meant to be."""

from __future__ import annotations

from collections.abc import Collection


def nearest(word: str, choices: Collection[str]) -> str:
    """Return the choice that is most like ``word``, "" if none is like it."""
    from difflib import get_close_matches

    by_small_letters = {choice.lower(): choice for choice in choices}
    matches = get_close_matches(word.lower(), list(by_small_letters), n=1)
    return by_small_letters[matches[0]] if matches else ""


def question(word: str, choices: Collection[str]) -> str:
    """Return a clause that asks for the nearest choice, with a semicolon; "" without one."""
    choice = nearest(word, choices)
    return f"; did you mean {choice}?" if choice else ""


def not_a_command(word: str, choices: Collection[str]) -> str:
    """Say that there is no such command."""
    return f"there is no command {word!r}{question(word, choices)}"


def not_a_choice(word: str, choices: Collection[str]) -> str:
    """Say that ``word`` is no choice, and which there are."""
    return f"{word!r} is none of {', '.join(choices)}{question(word, choices)}"
