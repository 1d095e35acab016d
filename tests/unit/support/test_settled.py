"""The waits of the tests of screens end when all work is done, and not before."""

from __future__ import annotations

import asyncio
import threading

import pytest
from support import settled
from textual.app import App, ComposeResult
from textual.widgets import Static


async def _chain(turns: int) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


async def test_a_wait_has_no_number_of_turns() -> None:
    work = asyncio.create_task(_chain(3000))
    await settled.wait_for_idle()
    assert work.done()


async def test_a_wait_ends_before_a_timer() -> None:
    timer = asyncio.create_task(asyncio.sleep(settled.MAX_TURNS))
    await settled.wait_for_idle()
    assert not timer.done()
    timer.cancel()


async def test_work_without_an_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settled, "MAX_TURNS", 500)
    work = asyncio.create_task(_chain(10**9))
    with pytest.raises(AssertionError, match="500 turns"):
        await settled.wait_for_idle()
    work.cancel()


async def test_a_thread_gets_turns_but_may_wait_for_the_test() -> None:
    released = threading.Event()
    work = asyncio.create_task(asyncio.to_thread(released.wait))
    await settled.wait_for_idle()
    assert not work.done()
    released.set()
    await work


class Chain(App[int]):
    """Each drawing causes another layout, some times."""

    LEFT = 20

    def compose(self) -> ComposeResult:
        yield Static("begin")

    def on_mount(self) -> None:
        self.left = self.LEFT
        self.call_after_refresh(self.step)

    def step(self) -> None:
        self.left -= 1
        self.query_one(Static).update("\n".join("x" * (self.LEFT - self.left)))
        if self.left:
            self.call_after_refresh(self.step)


async def test_a_screen_has_drawn_layouts_that_follow_each_other() -> None:
    app = Chain()
    async with app.run_test():
        await settled.wait_until_drawn(app)
        assert app.left == 0
        assert app.query_one(Static).size.height == Chain.LEFT
