"""Random keys and sizes on a live process: no fault, and no state without a way out.

``make random-keys`` does 10,000 steps; LOCKTOP_RANDOM_KEYS=STEPS:SEED does others. Without a seed
there, the seed is random.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.keys import leaves_all, own_keys
from support.pty_tool import PtyTool
from support.targets import Target

from locktop.collector.sources.launch import preload_environment
from locktop.tui.commands.demo import demo_program

#: The usual steps, and how many there are between two checks.
STEPS, BETWEEN_CHECKS = 400, 100
#: The usual seed: each run types the same.
SEED = 52
#: The action that quits does nothing in this program until the file ``may-quit`` is there.
CHILD = Path(__file__).with_name("keys_child.py")
USUAL_SIZE = (120, 40)
#: Keys and other input that no keymap has.
OTHERS = (
    "\r", " ", "\x7f", "\t", "y", "n", "0", "1", "9", "-35s\r", "50%\r", "cache\r", "lock:*\r",
    "wait>1ms\r", "cpu>x\r", "\x1b", "\x1b[1;5C", "\x1b[M !!", "\x1b[<0;5;5M", "\x1b[<0;5;5m",
    "\x1b[<64;9;9M", "\x1b[200~pasted text\x1b[201~", "\x1b[I", "\x1b[O", "\x1b[0n", "\xe9", "\x00",
    "\x1b[3~", "\x1b[2~", "\x1b[1;2A", "\x1b[999~", "\x1bx", "\u65e5",
)  # fmt: skip


@pytest.fixture
def process(request: pytest.FixtureRequest) -> Iterator[Target]:
    options = ["--deadlock"] if request.param else []
    with Target([demo_program(), *options], preload_environment(None)) as target:
        yield target


def _wanted() -> tuple[int, int]:
    steps, _, seed = os.environ.get("LOCKTOP_RANDOM_KEYS", f"{STEPS}:{SEED}").partition(":")
    return int(steps or STEPS), int(seed or random.randrange(10**6))


@pytest.mark.parametrize("process", [True], indirect=True, ids=["deadlock"])
def test_random_keys_and_sizes_leave_the_screen_in_use(process: Target, tmp_path: Path) -> None:
    steps, seed = _wanted()
    print(f"LOCKTOP_RANDOM_KEYS={steps}:{seed}", file=sys.stderr)
    chosen = random.Random(seed)
    own = own_keys()
    locktop = [sys.executable, str(CHILD), "-p", str(process.pid)]
    command = ["sh", "-c", 'exec "$@" 2> errors', "sh", *locktop]
    own_settings = {
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "PYTHONFAULTHANDLER": "1",
        "VISUAL": "true",  # an editor would stay
    }
    with PtyTool(command, USUAL_SIZE, own_settings, cwd=tmp_path) as tool:
        tool.shows("help")
        for done in range(0, steps, BETWEEN_CHECKS):
            mark = tool.received
            typed = _type(tool, chosen, own)
            state = f"seed {seed}, after {done + BETWEEN_CHECKS} steps; the last: {typed!r}"
            tool.resize(*USUAL_SIZE)
            if not leaves_all(tool):
                ended = f"status {tool.process.poll()}, {(tmp_path / 'errors').read_text()}"
                raise AssertionError(f"{state}\n{tool.text}\n{ended}")
            assert b"fault: " not in tool.since(mark), state
        (tmp_path / "may-quit").touch()
        tool.press("q")
        status = tool.wait()
    errors = (tmp_path / "errors").read_text()
    assert (status, errors) == (0, ""), f"seed {seed}\n{errors}"


def _type(tool: PtyTool, chosen: random.Random, own: list[str]) -> list[str | tuple[int, int]]:
    """Make that many steps; return the keys and sizes."""
    typed: list[str | tuple[int, int]] = []
    for _ in range(BETWEEN_CHECKS):
        if chosen.random() < 0.05:
            size = (chosen.randint(1, 200), chosen.randint(1, 60))
            tool.resize(*size)
            typed.append(size)
            continue
        key = chosen.choice(own if chosen.random() < 0.85 else OTHERS)
        tool.press(key)
        typed.append(key)
    return typed
