"""Copies a text to the clipboard of the terminal, and to a file in any case."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Protocol, runtime_checkable

from textual.app import App

from locktop.collector.errors import LocktopError
from locktop.collector.render.copied_file import save_copy
from locktop.tui.terminal.clipboard import MAX_BYTES
from locktop.tui.views.cells import plain

#: How long the message with the path stays, in seconds.
_COPIED_S = 15.0


@runtime_checkable
class _Sends(Protocol):
    """An app that can send a text to the clipboard of its terminal."""

    def send_to_clipboard(self, data: bytes) -> str:
        """Send the text; return what the user must know about that, or ""."""


class Messages(Protocol):
    """A screen that has messages, and runs work beside the keys; see ListScreen."""

    @property
    def app(self) -> App[object]:
        """The app, which may send."""

    def show_message(self, *texts: str, style: str = "text", seconds: float = 6.0) -> None:
        """Show a message."""

    def start(self, work: Callable[[], Coroutine[Any, Any, None]], group: str) -> None:
        """Run ``work`` beside the keys."""


class Copier:
    """Copies for one screen. A terminal does not say whether it took the text: hence the file."""

    def __init__(self, screen: Messages) -> None:
        self._screen = screen

    def copy(self, what: str, make: Callable[[], str] | None) -> None:
        """Copy a text.

        Args:
            what: names the text in the message.
            make: returns the text, in another thread; None if there is nothing to copy.
        """
        if make is None:
            self._screen.show_message(f"Nothing to copy: {what} is not on this screen.")
        else:
            self._screen.start(partial(self._copy, what, make), "copy")

    async def _copy(self, what: str, make: Callable[[], str]) -> None:
        data = (await asyncio.to_thread(make)).encode("utf-8", "backslashreplace")
        path, fault = None, ""
        try:
            path = await asyncio.to_thread(save_copy, data)
        except LocktopError as error:
            fault = str(error)
        app, note = self._screen.app, ""
        is_small = len(data) <= MAX_BYTES
        if is_small and isinstance(app, _Sends):
            note = app.send_to_clipboard(data)
        large = f"larger than {MAX_BYTES >> 10} KB, so not sent to the terminal"
        if path is None:
            done = f"Copied {what}: sent to the terminal" if is_small else f"Not copied: {large}"
            self._screen.show_message(f"{done}; no file: {fault}", style="stuck", seconds=_COPIED_S)
            return
        done = "sent to the terminal; also in " if is_small else f"{large}; in "
        lines = [f"Copied {what}: {done}{plain(str(path))}", note]
        self._screen.show_message(*filter(None, lines), seconds=_COPIED_S)
