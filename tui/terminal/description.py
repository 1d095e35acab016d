"""The abilities of the terminal, by the description of the name in TERM."""

from __future__ import annotations

import os
from collections.abc import Mapping

from msgspec import Struct


class Abilities(Struct, frozen=True):
    """The abilities that some terminals lack."""

    erases: bool = False  # erased cells get the background of the present style
    moves_rows: bool = False  # rows are inserted and deleted between margins
    repeats: bool = False  # CSI n b repeats the last character, also one beyond ASCII
    repeats_ascii: bool = False  # CSI n b repeats a character of ASCII
    feeds: bool = False  # VT moves the cursor down in its column
    draws_lines: bool = False  # the character set for drawing works beside UTF-8


def described_abilities() -> Abilities:
    """Return the abilities that the description tells, see ability_question.py for the others."""
    try:
        import curses
    except ImportError:  # not every Python has it
        return Abilities()
    # Its description is silent, but tmux erases in colour since 2.4.
    is_tmux = os.environ.get("TERM", "").startswith("tmux")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        curses.setupterm(fd=nowhere)
        return Abilities(
            erases=(curses.tigetflag("bce") == 1 and bool(curses.tigetstr("ech"))) or is_tmux,
            moves_rows=all(curses.tigetstr(name) for name in ("csr", "il", "dl")),
            draws_lines=_is_remote_multiplexer(os.environ),
        )
    except curses.error:  # no such description
        return Abilities()
    finally:
        os.close(nowhere)


def _is_remote_multiplexer(environ: Mapping[str, str]) -> bool:
    """Whether the terminal is tmux or screen at the other end of an SSH connection.

    These two draw lines beside UTF-8. PuTTY, mosh and the Linux console do not. The lines look the
    same, but `tmux capture-pane` prints them as letters. So only a link is worth them.
    """
    is_remote = bool(environ.get("SSH_CONNECTION")) and not (
        environ.get("TMUX") or environ.get("STY")
    )
    return is_remote and environ.get("TERM", "").startswith(("tmux", "screen"))
