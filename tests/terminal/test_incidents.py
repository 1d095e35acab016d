"""Few keys from `locktop -p PID` solve each incident of the guide, on a terminal of 80x24."""

from __future__ import annotations

import pytest
from support.incidents import INCIDENTS, Incident, need_answer, started
from support.pty_tool import PtyTool
from support.targets import Compiler
from support.tool import COMMAND

#: The keys of the incidents as a terminal sends them.
BYTES = {"enter": "\r", "escape": "\x1b", "tab": "\t", "down": "\x1b[B", "right": "\x1b[C"}
MAX_KEYS = 6


@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda incident: incident.name)
def test_a_user_with_few_keys_sees_the_answer(incident: Incident, compiler: Compiler) -> None:
    assert len(incident.keys) <= MAX_KEYS
    need_answer(incident)
    with (
        started(incident, compiler) as target,
        PtyTool([COMMAND, "-p", str(target.pid)], (80, 24)) as tool,
    ):
        tool.until(lambda text: incident.headline in text, "the headline")
        for number, key in enumerate(incident.keys):
            before = tool.text
            tool.press(BYTES.get(key, key))
            if number + 1 < len(incident.keys):
                tool.until(lambda text, before=before: text != before, f"an effect of {key}")
        tool.until(lambda text: all(one in text for one in incident.answer), str(incident.answer))
