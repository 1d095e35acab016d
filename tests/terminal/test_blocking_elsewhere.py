"""The tree of blockers goes on in other processes, and Enter walks there."""

from __future__ import annotations

import re

import pytest
from support.across import running
from support.pty_tool import PtyTool
from support.tool import COMMAND

SIZE = (120, 40)
#: How the screen goes to the first row of a list, and one down.
HOME, DOWN, ENTER = "\x1b[H", "\x1b[B", "\r"


@pytest.mark.parametrize(
    ("name", "rows_down"),
    [("threads_behind_a_lock_and_a_full_pipe", 2), ("popen_wait_before_read", 1)],
)
def test_enter_walks_along_a_step_to_the_process_that_is_waited_for(
    name: str, rows_down: int
) -> None:
    """The process waits for a child, below a lock or without one; the child fills a pipe."""
    with running("circles", name) as pid, PtyTool([COMMAND, "-p", str(pid)], SIZE) as tool:
        tool.press("4")
        text = tool.shows("writes to its full stdout")
        child = re.search(r"→ (\S+ \d+): writes", text)
        assert child is not None, text
        assert "→ back to " in text
        tool.press(HOME + DOWN * rows_down + ENTER)
        tool.until(lambda text: f" {child[1]} " in text.splitlines()[1], "the child")
