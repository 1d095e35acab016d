"""Incidents over a real SSH connection: two keys at most show what a user needs to know."""

from __future__ import annotations

import operator
import re
import shlex
import shutil
from functools import partial
from pathlib import Path

import pytest
from support.pty_tool import PtyTool
from support.remote_incidents import INCIDENTS, Host, RemoteIncident
from support.ssh_server import SSHD, SshServer
from support.targets import Compiler
from support.tool import COMMAND

MAX_KEYS = 2
BYTES = {"enter": "\r"}

pytestmark = pytest.mark.skipif(
    SSHD is None or shutil.which("ssh") is None,
    reason="no ssh or sshd: apt-get install openssh-client openssh-server",
)


@pytest.mark.parametrize(
    "incident",
    [
        pytest.param(each, id=each.name, marks=[pytest.mark.big] if each.is_big else [])
        for each in INCIDENTS
    ],
)
def test_two_keys_show_the_answer(
    incident: RemoteIncident, server: SshServer, compiler: Compiler, tmp_path: Path
) -> None:
    assert len(incident.keys) <= MAX_KEYS
    files = tmp_path / "files"
    files.mkdir()
    with incident.start(Host(compiler, files)) as arguments:
        locktop = shlex.join([COMMAND, *arguments])
        remote = f"cd {tmp_path} && exec env LOCKTOP_CACHE=none {locktop} 2> errors"
        with PtyTool(server.command(remote), (80, 24)) as tool:
            tool.until(lambda text: incident.sign in one_line(text), incident.sign)
            tool.until(partial(shows_all, incident.before), str(incident.before))
            for key in incident.keys:
                before = tool.text
                tool.press(BYTES.get(key, key))
                tool.until(partial(operator.ne, before), f"an effect of {key}")
            tool.until(partial(is_over, incident), str(incident.answer))
            while not is_answered(incident, tool.text):
                tool.press(BYTES.get(incident.keys[-1], incident.keys[-1]))
                tool.until(lambda text: not is_refused(incident, text), "another try")
                tool.until(partial(is_over, incident), str(incident.answer))


def is_answered(incident: RemoteIncident, text: str) -> bool:
    return shows_all(incident.answer, text)


def shows_all(parts: tuple[str, ...], text: str) -> bool:
    return all(re.search(part, one_line(text)) for part in parts)


def is_refused(incident: RemoteIncident, text: str) -> bool:
    return bool(incident.refusal) and incident.refusal in one_line(text)


def is_over(incident: RemoteIncident, text: str) -> bool:
    return is_answered(incident, text) or is_refused(incident, text)


def one_line(text: str) -> str:
    """The screen with single blanks, as a user reads a sentence that goes over several lines."""
    return " ".join(text.split())
