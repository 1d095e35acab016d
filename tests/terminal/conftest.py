"""Children of the app on terminals."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest
from support.ssh_server import SshServer
from support.terminal import Terminal, opened_terminal


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    with opened_terminal() as opened:
        yield opened


@pytest.fixture
def terminal_here() -> Iterator[Callable[[], Terminal]]:
    """Opens a terminal in the directory that the test has chosen."""
    with contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(opened_terminal())


@pytest.fixture
def impatient_terminal() -> Iterator[Terminal]:
    """A terminal with a child that soon gives up its unread output."""
    with opened_terminal(patience_s=0.3) as opened:
        yield opened


@pytest.fixture
def picker() -> Iterator[Terminal]:
    opened = Terminal("picker_child.py", (80, 24))
    try:
        opened.wait_text("scan again", 0)
        yield opened
    finally:
        opened.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    opened = SshServer(tmp_path_factory.mktemp("ssh"))
    yield opened
    opened.close()
