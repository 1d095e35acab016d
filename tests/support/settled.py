"""Waits of Textual's pilot for the end of all work, independent of the load of the machine."""

from __future__ import annotations

import asyncio

import pytest

#: A message that causes another message takes a few turns of the event loop. No test has a chain
#: of so many messages.
TURNS = 200


async def wait_for_idle(min_sleep: float = 0.0, max_sleep: float = 1.0) -> None:
    """Let the event loop do all work that is due, for any speed of the machine.

    Textual's own function waits at least 20 ms, and takes little CPU time for idleness. A process
    that gets no CPU for so long seems idle, although its messages wait.
    """
    await asyncio.sleep(min_sleep)
    for _ in range(TURNS):
        await asyncio.sleep(0)


def use_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every pilot count turns of the event loop, and not the time."""
    for module in ("textual.app", "textual.pilot"):
        monkeypatch.setattr(f"{module}.wait_for_idle", wait_for_idle)
