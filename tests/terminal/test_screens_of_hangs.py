"""The first screen says why a process hangs, at 80x24 and without a key.

Each program runs with the library or without, in turn. `make incidents` runs each both ways.
"""

from __future__ import annotations

import os
import re

import pytest
from support.hangs import HANGS, Hang, hanging
from support.pty_tool import PtyTool
from support.targets import Compiler
from support.tool import COMMAND

BOTH = "LOCKTOP_INCIDENT_CHECKS" in os.environ
CASES = [
    (hang, is_prepared)
    for number, hang in enumerate(HANGS)
    for is_prepared in (True, False)
    if BOTH or is_prepared == bool(number % 2)
]


@pytest.mark.parametrize(
    ("hang", "is_prepared"),
    CASES,
    ids=[f"{one.name}-{'prepared' if prepared else 'unprepared'}" for one, prepared in CASES],
)
def test_the_first_screen_has_the_answer(hang: Hang, is_prepared: bool, compiler: Compiler) -> None:
    with (
        hanging(hang, is_prepared, compiler) as pid,
        PtyTool([COMMAND, "-p", str(pid)], (80, 24)) as tool,
    ):
        tool.until(lambda text: all(re.search(one, text) for one in hang.screen), str(hang.screen))
        if hang.never:
            tool.until(lambda text: "Details of a " in text, "the details")
            assert not re.search(hang.never, tool.text), tool.text
        if hang.status == 0:
            assert not re.search("HANG|DEADLOCK", tool.text)
