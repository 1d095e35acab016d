"""An app with the themes of locktop, and its run on a terminal."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from textual import events, on
from textual.app import App, ScreenStackError
from textual.binding import Binding, BindingType

from locktop.tui import keymap, themes
from locktop.tui.bindings import textual_keymap
from locktop.tui.exit_status import EXIT_SCREEN_FAULT
from locktop.tui.input_options import DEFAULT_INPUT, InputOptions
from locktop.tui.terminal import clipboard, terminal_program
from locktop.tui.terminal.driver import Meter, MeteredDriver, metered_driver
from locktop.tui.terminal.end_signals import EndSignals
from locktop.tui.terminal.watchdog import Launched, Watchdog
from locktop.tui.widgets.list_screen import ListScreen

Result = TypeVar("Result")

#: Textual's own status after an exception. An error outside Textual's main task gives None.
_TEXTUAL_FAULT = 1
#: Seconds after a new size in which all widgets have it.
_SETTLED_S = 0.5
#: Seconds between two collections of all garbage, at least; and at most this share of the time.
#: Each strip of Textual refers to itself. Python's own collections come so rarely during scans
#: that dead strips stayed: some 30 kB a scan.
_COLLECT_EVERY_S, _COLLECT_SHARE = 10.0, 0.01
#: Tracebacks of faults that the app keeps for its end.
_MAX_FAULTS = 5


class ThemedApp(App[Result]):
    """An app with the themes of locktop and without animations."""

    # Beside this file: the picker's app, a subclass, lies in another folder.
    CSS_PATH = Path(__file__).with_name("app.tcss")
    ENABLE_COMMAND_PALETTE = False
    # Also in the filter and in the help, where Textual would copy text.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "quit", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", show=False, priority=True),
        Binding("ctrl+l", "paint_all", show=False, priority=True),
    ]

    def __init__(
        self,
        theme: str | None,
        meter: Meter,
        environ: Mapping[str, str],
        input_options: InputOptions = DEFAULT_INPUT,
    ) -> None:
        colourless = bool(environ.get("NO_COLOR"))
        self._themes, self._wrong = themes.load_all()
        #: The keys that count.
        self.key_table, wrong_keys = keymap.load(input_options.keymap)
        self._wrong += wrong_keys
        #: Whether the terminal reports clicks at the start.
        self.begins_with_mouse = input_options.mouse
        self._environ = environ
        self.meter = meter
        super().__init__(
            driver_class=metered_driver(meter), ansi_color=True if colourless else None
        )
        self.animation_level = "none"
        if self.key_table.changed:
            self.set_keymap(textual_keymap(self.key_table))
        for file in self._themes.values():
            self.register_theme(themes.to_textual(file))
        fallback = themes.default_name(dict(environ))
        if theme is not None and theme not in self._themes:
            self._wrong.append(f"there is no theme {theme!r}; there are {', '.join(self._themes)}")
        wanted = "mono" if colourless else theme
        self.theme = wanted if wanted in self._themes else fallback
        self._colourless = colourless
        self._handlers: dict[int, Any] = {}
        #: The signals that end the app, which run_app() handles.
        self.end_signals = EndSignals()
        self._faults: dict[str, None] = {}  # different tracebacks, the oldest first

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """The CSS variables of locktop for a theme without them, which is one of Textual's."""
        # App.__init__ calls this too, before the themes are loaded.
        known_themes = getattr(self, "_themes", {})
        return themes.variables(known_themes["night"]) if "night" in known_themes else {}

    def on_mount(self) -> None:
        """Handle the signals that end the app, and paint everything after a suspension."""
        self.app_resume_signal.subscribe(self, lambda _: self.screen.refresh())
        if not self.is_headless:
            loop = asyncio.get_running_loop()
            self._handlers = _pass_on_user_signal(self, loop)
            self.end_signals.obey(partial(_close, self, loop))

    async def on_event(self, event: events.Event) -> None:
        """Clear the message before the key that may cause the next one.

        A size is read again. Textual's signal handler reads the size and then posts the event.
        A later signal between the two posts its newer size first. If the screen has that size
        already, Textual would paint nothing, but the terminal may have lost cells in between. A
        widget may paint for the size before once more, so all is painted again a little later.
        """
        if isinstance(event, events.Resize) and isinstance(self._driver, MeteredDriver):
            event = self._driver.size_event()
        if isinstance(event, events.Key) and not event.is_forwarded and self.is_running:
            screen = self.screen
            if isinstance(screen, ListScreen):
                screen.footer.key_pressed()
        await super().on_event(event)
        if isinstance(event, events.Resize):
            self._paint_again()
            self.set_timer(_SETTLED_S, self._paint_again)

    def _paint_again(self) -> None:
        """Paint the whole screen; only cells that the terminal lacks are sent."""
        with suppress(ScreenStackError):  # at the start
            self.screen.refresh()

    @on(ListScreen.Fault)
    def _keep_fault(self, message: ListScreen.Fault) -> None:
        if len(self._faults) < _MAX_FAULTS:
            self._faults["".join(traceback.format_exception(message.error))] = None

    def print_faults(self) -> None:
        """Print the tracebacks of the faults that did not end the app, on the standard error."""
        with suppress(OSError):  # the terminal may be gone
            for text in self._faults:
                sys.stderr.write(text)

    def on_user_signal(self) -> None:
        """SIGUSR2 came. An app without snapshots ignores the signal."""

    def on_ready(self) -> None:
        """After the first layout: report wrong theme files, and enable the garbage collector.

        The collector skips the objects that exist by now.
        """
        if self._wrong:
            self._list_screen().show_message(*self._wrong, style="waiting", seconds=15)
        gc.freeze()
        gc.enable()
        if not self.is_headless:
            self.set_timer(_COLLECT_EVERY_S, self._collect_garbage)

    def _collect_garbage(self) -> None:
        began = time.perf_counter()
        gc.collect()
        took_s = time.perf_counter() - began
        pause_s = max(_COLLECT_EVERY_S, took_s / _COLLECT_SHARE)
        self.set_timer(pause_s, self._collect_garbage)

    def add_warnings(self, lines: Iterable[str]) -> None:
        """Show these lines at the start, with the theme files that were left out."""
        self._wrong += lines

    def push_screen(self, *args: Any, **kwargs: Any) -> Any:
        """Push a screen. Textual then tells its end to the app, which is always there.

        Otherwise Textual would tell the widget whose key or click opened the screen. By the end of
        the screen the widget may be gone.
        """
        with self._context():
            return super().push_screen(*args, **kwargs)

    def restore_handlers(self) -> None:
        """Restore the signal handlers from before the app."""
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _list_screen(self) -> ListScreen:
        """The visible screen of lists, maybe below a dialogue. Each app begins with one."""
        return next(
            screen for screen in reversed(self.screen_stack) if isinstance(screen, ListScreen)
        )

    def send_to_clipboard(self, data: bytes) -> str:
        """Send a text to the clipboard of the terminal.

        Returns:
            What the user must have set for that, "" for nothing.
        """
        if self._driver is not None:
            self._driver.write(clipboard.set_clipboard(data, self._environ))
        return clipboard.note(self._environ)

    def run_on_terminal(self, command: Sequence[str]) -> str:
        """Run a program on the terminal, and come back; return what went wrong, or ""."""
        if self.is_headless:
            return "There is no terminal for another program."
        with self.suspend():
            return terminal_program.run(command)

    def action_paint_all(self) -> None:
        """Paint the whole screen again: another program may have written on the terminal."""
        if isinstance(self._driver, MeteredDriver):
            self._driver.forget_cells()
        self.screen.refresh()

    def action_toggle_mouse(self) -> None:
        """Have the terminal report clicks, or leave the mouse to the terminal."""
        driver = self._driver
        if not isinstance(driver, MeteredDriver):
            return
        driver.set_mouse(not driver.has_mouse)
        key = self.key_table.first_label("mouse")
        said = f"The mouse chooses rows; {key} gives it back to the terminal, to select text."
        off = f"The mouse selects text in the terminal; {key} lets it choose rows."
        self._list_screen().show_message(said if driver.has_mouse else off)

    def action_next_theme(self) -> None:
        """Change to the next theme by name."""
        if self._colourless:
            self._list_screen().show_message("NO_COLOR is set: there is one theme.")
            return
        names = sorted(self._themes)
        self.theme = names[(names.index(self.theme) + 1) % len(names)]
        self._list_screen().show_message(f"Theme {self.theme}", seconds=2)


def run_app(
    app: ThemedApp[Any],
    launched: Launched | None = None,
    signals: EndSignals | None = None,
) -> int:
    """Run the app on this terminal until the user quits; return the exit status.

    After a fault the traceback is on the standard error.

    Args:
        app: the app.
        launched: the program that the app shows, if locktop started that program.
        signals: the signals that end the app, if the caller handles them already.
    """
    with ExitStack() as stack:
        # Before Textual sets the terminal: the default action would leave it as set.
        app.end_signals = signals or stack.enter_context(EndSignals())
        stack.enter_context(_job_signals_restored())
        return _run_app(app, launched)


def _run_app(app: ThemedApp[Any], launched: Launched | None) -> int:
    try:
        with Watchdog(lambda number: app.meter.abandon(number), launched):
            if app.end_signals.first is None:
                app.run(mouse=app.begins_with_mouse)
    except Exception:
        traceback.print_exc()
        return EXIT_SCREEN_FAULT
    finally:
        app.restore_handlers()
        app.print_faults()
    if app.end_signals.first is not None:
        return 128 + app.end_signals.first
    status = app.return_code
    return EXIT_SCREEN_FAULT if status is None or status == _TEXTUAL_FAULT else status


@contextmanager
def _job_signals_restored() -> Iterator[None]:
    """Restore the handlers that Textual sets for the stop of the process and for its going on."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTSTP, signal.SIGCONT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _close(app: ThemedApp[Any], loop: asyncio.AbstractEventLoop, number: int) -> None:
    """Close the app at a signal.

    The handler is not the event loop's. When the loop had ended, a signal would end the process
    at once and leave a launched program behind. A shell and the kernel may both send a signal.
    """
    if loop.is_closed():
        raise SystemExit(128 + number)
    app.meter.hurry()
    loop.call_soon_threadsafe(app.exit, None, 128 + number)


def _pass_on_user_signal(app: ThemedApp[Any], loop: asyncio.AbstractEventLoop) -> dict[int, Any]:
    """Call ``app.on_user_signal`` at SIGUSR2; return the handler from before."""

    def pass_on(number: int, _: object) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(app.call_later, app.on_user_signal)

    return {signal.SIGUSR2: signal.signal(signal.SIGUSR2, pass_on)}
