"""A feed that a test controls, and the text on the screen."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from textual._context import visible_screen_stack
from textual.app import App
from textual.strip import Strip

from locktop.collector.errors import LocktopError
from locktop.collector.model import Snapshot


class HandFeed:
    """A feed that publishes on request of a test, from any thread."""

    def __init__(self, *first: Snapshot) -> None:
        self._first = first
        self.publish: Callable[[Snapshot], None] = lambda _: None
        self.interval_s = 0.0
        self.level = "contended"
        self.refusal = ""  # the reason that no level can be set
        self.stopped = False
        self.stale = ""
        self.sessions: list[bool] = []  # True: one was begun, False: one was ended
        self.profiled: list[tuple[int, ...]] = []  # locks of each profile, () at its end
        self.source: Any = None  # None: the process runs on another machine
        self.followed = 0  # tid
        self.wanted_sections: set[str] = set()
        self.reads_names = True
        self.followed_locks: frozenset[int] = frozenset()

    def start(self, publish: Callable[[Snapshot], None], interval_s: float) -> None:
        self.publish = publish
        self.interval_s = interval_s
        for snapshot in self._first:
            publish(snapshot)

    def set_interval(self, interval_s: float) -> None:
        self.interval_s = interval_s

    def follow(self, tid: int, locks: Collection[int]) -> None:
        self.followed, self.followed_locks = tid, frozenset(locks)

    def want_section(self, name: str, wanted: bool) -> None:
        (self.wanted_sections.add if wanted else self.wanted_sections.discard)(name)

    def set_reading_names(self, wanted: bool) -> None:
        self.reads_names = wanted

    @property
    def no_level(self) -> str:
        return ""

    def set_level(self, name: str) -> str:
        if self.refusal:
            raise LocktopError(self.refusal)
        before, self.level = self.level, name
        return before

    def session(self, begins: bool) -> str:
        self.sessions.append(begins)
        return "The session begins anew." if begins else "The session ended."

    def start_part(self, name: str, *arguments: Any) -> None:
        if self.refusal:
            raise LocktopError(self.refusal)
        self.profiled.append(tuple(arguments[0]))

    def end_part(self, name: str) -> None:
        self.profiled.append(())

    def stop(self) -> None:
        self.stopped = True


def text_of(app: App[int]) -> str:
    """The screen as plain lines of text."""
    return "\n".join(strip.text.rstrip() for strip in strips_of(app))


def strips_of(app: App[int]) -> list[Strip]:
    """The lines of the screen with their styles. Textual has no public way to them."""
    visible_screen_stack.set(app._background_screens)
    return app.screen._compositor.render_strips()
