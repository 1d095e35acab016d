"""The abilities of the terminal, by the description of the name in TERM."""

from __future__ import annotations

import os


def erases_in_colour() -> bool:
    """Whether erased cells get the background of the present style."""
    try:
        import curses
    except ImportError:  # not every Python has it
        return False
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        curses.setupterm(fd=nowhere)
        return curses.tigetflag("bce") == 1 and bool(curses.tigetstr("ech"))
    except curses.error:  # no such description
        return False
    finally:
        os.close(nowhere)
