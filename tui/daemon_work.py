"""Work beside the event loop that does not hold up the end of locktop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

T = TypeVar("T")


async def run_in_daemon(work: Callable[[], T], name: str) -> T:
    """Return what ``work`` returns in a thread of its own, or raise what it raises.

    locktop waits for the end of a thread of asyncio.to_thread() before it ends itself.
    """
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[T] = loop.create_future()

    def end(set_answer: Callable[[], None]) -> None:
        if not answered.done():  # else it is cancelled
            set_answer()

    def run() -> None:
        try:
            set_answer = partial(answered.set_result, work())
        except Exception as error:
            set_answer = partial(answered.set_exception, error)
        with contextlib.suppress(RuntimeError):  # the loop is closed: the screen has ended
            loop.call_soon_threadsafe(end, set_answer)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await answered
