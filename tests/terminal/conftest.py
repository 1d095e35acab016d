"""Children of the app on terminals."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest
from support.terminal import Terminal


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    opened = Terminal("child.py")
    try:
        opened.wait_text("shard0.mutex", 0)
        opened.frame("settle")
        yield opened
    finally:
        opened.close()


@pytest.fixture
def terminal_here() -> Iterator[Callable[[], Terminal]]:
    """Opens a terminal in the directory that the test has chosen."""
    with contextlib.ExitStack() as stack:

        def opened() -> Terminal:
            terminal = Terminal("child.py")
            stack.callback(terminal.close)
            terminal.wait_text("shard0.mutex", 0)
            terminal.frame("settle")
            return terminal

        yield opened


@pytest.fixture
def impatient_terminal() -> Iterator[Terminal]:
    """A terminal with a child that soon gives up its unread output."""
    opened = Terminal("child.py", patience_s=0.3)
    try:
        opened.wait_text("shard0.mutex", 0)
        opened.frame("settle")
        yield opened
    finally:
        opened.close()


@pytest.fixture
def picker() -> Iterator[Terminal]:
    opened = Terminal("picker_child.py", (80, 24))
    try:
        opened.wait_text("scan again", 0)
        yield opened
    finally:
        opened.close()
