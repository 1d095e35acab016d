"""The lines of the source below the frames of real programs, and the editor at such a line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.incidents import INCIDENTS, Incident, need_answer, started
from support.pty_tool import PtyTool
from support.targets import TARGETS, Compiler
from support.tool import COMMAND

SOURCE_LINE = re.compile(r"^ +(\d+) │ (.+)$", re.MULTILINE)


@pytest.mark.parametrize("name", ["hot-lock", "python"])
def test_the_lines_are_those_of_the_file(name: str, compiler: Compiler, tmp_path: Path) -> None:
    incident = next(one for one in INCIDENTS if one.name == name)
    need_answer(incident)
    source = _source_of(incident)
    lines = source.read_text().splitlines()
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "edits $*"\nread line\n')
    editor.chmod(0o755)
    with (
        started(incident, compiler) as target,
        PtyTool([COMMAND, "-p", str(target.pid)], (160, 50), {"VISUAL": str(editor)}) as tool,
    ):
        tool.shows(incident.headline)
        # At first the only row of a Python program may be that of the interpreter's own locks.
        tool.until(
            lambda text: bool(re.search(r"(?m)^\*(?!Python runtime)", text)), "the lock's row"
        )
        tool.press("\r")
        tool.shows("Details of a lock")
        tool.press("z")

        def has_lines(text: str) -> bool:
            found = SOURCE_LINE.findall(text)
            return bool(found) and [lines[int(number) - 1].strip() for number, _ in found] == [
                line.strip() for _, line in found
            ]

        # Neither the screen nor the editor writes all its text at once.
        tool.until(has_lines, "lines of the source, and no other ones")
        tool.press("e")
        call = re.compile(rf"edits \+\d+ {re.escape(str(source))}")
        tool.until(lambda text: bool(call.search(text.replace("\n", ""))), "the editor")
        tool.press("\r")
        tool.shows("Details of a lock")


def _source_of(incident: Incident) -> Path:
    name = incident.target if incident.target.endswith(".py") else f"{incident.target}.c"
    return TARGETS / "incidents" / name
