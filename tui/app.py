"""The app that shows the monitor, and what it has in common with the picker."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from textual.app import App
from textual.binding import Binding, BindingType

from locktop.tui import themes
from locktop.tui.feed import SnapshotFeed
from locktop.tui.frame_pacer import Pacer
from locktop.tui.screens.monitor import MonitorScreen
from locktop.tui.terminal.driver import Meter, metered_driver
from locktop.tui.views.styled_line import Line, cut, make_line
from locktop.tui.widgets.list_screen import ListScreen

if TYPE_CHECKING:
    from locktop.collector.profile.profile import Profile, Weight
    from locktop.tui.screens.call_tree import CallTreeScreen

Result = TypeVar("Result")


class ThemedApp(App[Result]):
    """An app with our themes and nothing that moves by itself."""

    # Beside this file: a screen that subclasses the app lies in another folder.
    CSS_PATH = Path(__file__).with_name("app.tcss")
    ENABLE_COMMAND_PALETTE = False
    # Also while a filter is typed or the help is read, where Textual would copy.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "quit", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", show=False, priority=True),
    ]

    def __init__(self, theme: str | None, meter: Meter, environ: Mapping[str, str]) -> None:
        colourless = bool(environ.get("NO_COLOR"))
        self._themes, self._wrong = themes.load_all()
        self.meter = meter
        super().__init__(
            driver_class=metered_driver(meter), ansi_color=True if colourless else None
        )
        self.animation_level = "none"
        for file in self._themes.values():
            self.register_theme(themes.to_textual(file))
        fallback = themes.default_name(dict(environ))
        if theme is not None and theme not in self._themes:
            self._wrong.append(f"there is no theme {theme!r}; there are {', '.join(self._themes)}")
        wanted = "mono" if colourless else theme
        self.theme = wanted if wanted in self._themes else fallback
        self._colourless = colourless
        self._handlers: dict[int, Any] = {}

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Our variables for a theme that does not set them (Textual's own)."""
        # Called by App.__init__ too, before there are themes of ours to take them from.
        known = getattr(self, "_themes", {})
        return themes.variables(known["night"]) if "night" in known else {}

    def on_mount(self) -> None:
        """Leave the terminal in order when told to end, paint all when it comes back to us."""
        self.app_resume_signal.subscribe(self, lambda _: self.screen.refresh())
        if not self.is_headless:
            self._handlers = _close_when_told_to_end(self, asyncio.get_running_loop())

    def on_ready(self) -> None:
        """The first layout is done: say what was wrong with theme files.

        And look for garbage again, but not among what was made so far.
        """
        if self._wrong:
            self._list_screen().show_message(*self._wrong, style="waiting", seconds=15)
        gc.freeze()
        gc.enable()

    def restore_handlers(self) -> None:
        """Signals do again what they did before it ran."""
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _list_screen(self) -> ListScreen:
        """The one in sight, or that below a dialogue; the first one of every app here is such."""
        return next(one for one in reversed(self.screen_stack) if isinstance(one, ListScreen))

    def action_next_theme(self) -> None:
        """Take the next theme by name."""
        if self._colourless:
            self._list_screen().show_message("NO_COLOR is set: there is one theme.")
            return
        names = sorted(self._themes)
        self.theme = names[(names.index(self.theme) + 1) % len(names)]
        self._list_screen().show_message(f"Theme {self.theme}", seconds=2)


class LocktopApp(ThemedApp[int]):
    """The monitor: made in one way for the command line and for the tests."""

    TITLE = "locktop"

    def __init__(
        self,
        feed: SnapshotFeed,
        theme: str | None = None,
        *,
        rate: float = 2.0,
        call_tree: tuple[str, bool] | None = None,
        environ: Mapping[str, str] = os.environ,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """The app over ``feed``.

        ``theme``: a name, None for what suits the terminal; ``rate``: pictures a second to start
        with; ``callers``: begin with the view of callers, by that weight and with idle waits or
        without; ``now``: a monotonic clock in seconds, which tests replace.
        """
        super().__init__(theme, Meter(), environ)
        self._monitor = MonitorScreen(feed, self.meter, Pacer(rate), now, call_tree)

    def get_default_screen(self) -> MonitorScreen:
        """The monitor is the first screen and the last."""
        return self._monitor


class CallTreeApp(ThemedApp[int]):
    """The view of callers alone, on what a file has."""

    TITLE = "locktop"

    def __init__(
        self,
        profile: Profile,
        theme: str | None = None,
        *,
        weight: Weight | None = None,
        idle: bool = False,
        environ: Mapping[str, str] = os.environ,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """``weight``: of ``profile``, to begin with; ``idle``: with waits for work; the others as
        of LocktopApp."""
        from locktop.tui.screens.call_tree import CallTreeScreen

        def title(width: int) -> Line:
            return cut(make_line((f" {profile.title}", "strong")), width)

        super().__init__(theme, Meter(), environ)
        self._call_tree = CallTreeScreen(profile, title, weight=weight, idle=idle, now=now)

    def get_default_screen(self) -> CallTreeScreen:
        """The first screen and the last."""
        return self._call_tree


def run_app(app: ThemedApp[Any], environ: Mapping[str, str] = os.environ) -> int:
    """Run on this terminal until the user quits; over SSH without the mouse's movements."""
    try:
        app.run(mouse="SSH_CONNECTION" not in environ)
    finally:
        app.restore_handlers()
    return app.return_code or 0


def _close_when_told_to_end(app: ThemedApp[Any], loop: asyncio.AbstractEventLoop) -> dict[int, Any]:
    """Gives the handlers before. Not by the loop: at its end a signal would end the process on the
    spot, and a program that it started be left behind. A shell and the kernel may both send one."""

    def close(number: int, _: object) -> None:
        if loop.is_closed():
            raise SystemExit(128 + number)
        app.meter.hurry()
        loop.call_soon_threadsafe(app.exit, None, 128 + number)

    return {number: signal.signal(number, close) for number in (signal.SIGTERM, signal.SIGHUP)}
