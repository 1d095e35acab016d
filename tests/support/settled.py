"""Waits of Textual's pilot for the end of all work, independent of the load of the machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from textual.app import App

#: The turns of the event loop for a thread of asyncio.to_thread(), which may wait for the test.
TURNS = 200
#: A screen that works for so many turns never comes to rest.
MAX_TURNS = 100_000

_to_thread = asyncio.to_thread
_threads = 0  # calls of asyncio.to_thread() that have not returned


async def wait_for_idle(min_sleep: float = 0.0, max_sleep: float = 1.0) -> None:
    """Wait until the event loop has nothing to do but wait for timers and files.

    Textual's own function waits at least 20 ms, and takes little CPU time for idleness. A process
    that gets no CPU for so long seems idle, although its messages wait.
    """
    await asyncio.sleep(min_sleep)
    for turn in range(MAX_TURNS):
        await asyncio.sleep(0)
        if _is_idle() and (not _threads or turn >= TURNS):
            return
    raise AssertionError(f"the event loop still has work after {MAX_TURNS} turns")


async def wait_until_drawn(app: App[Any]) -> None:
    """Wait until the screen has drawn all changes: a layout may cause another layout."""
    for _ in range(MAX_TURNS):
        await wait_for_idle()
        if not app.is_running or app._batch_count or not _has_changes(app):
            return
        app.screen._on_timer_update()
    raise AssertionError("the screen never comes to rest")


def use_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every pilot wait for the event loop, and not for a time."""
    for module in ("textual.app", "textual.pilot"):
        monkeypatch.setattr(f"{module}.wait_for_idle", wait_for_idle)
    monkeypatch.setattr(asyncio, "to_thread", _counted_to_thread)


async def _counted_to_thread(function: Callable[..., Any], *values: Any, **named: Any) -> Any:
    global _threads
    _threads += 1
    try:
        return await _to_thread(function, *values, **named)
    finally:
        _threads -= 1


def _is_idle() -> bool:
    """Return whether no callback is due; asyncio has no public way to say so."""
    return not asyncio.get_running_loop()._ready  # type: ignore[attr-defined]


def _has_changes(app: App[Any]) -> bool:
    """Return whether the screen would draw at its next timer; Textual keeps that private."""
    screen = app.screen
    return bool(
        screen._layout_required
        or screen._scroll_required
        or screen._repaint_required
        or screen._recompose_required
        or screen._dirty_widgets
        or screen._callbacks
    )
