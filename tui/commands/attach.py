"""``locktop`` and ``locktop -p PID``: the screen for a process that runs already."""

from __future__ import annotations

import argparse
import gc
from typing import TYPE_CHECKING

from locktop.collector.errors import LocktopError
from locktop.tui.commands import options
from locktop.tui.commands.options import (
    add_pid_of_screen,
    add_scan_options,
    add_screen,
    add_suppressions,
    attached,
    no_terminal,
    wants_accessible,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from locktop.collector.model import Notable
    from locktop.collector.sources.attach import Source
    from locktop.collector.sources.launched_program import LaunchedProgram


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_pid_of_screen(parser)
    add_screen(parser)
    add_scan_options(parser)
    add_suppressions(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Show the process of the command line, or one that the user picks from a list."""
    pid: int | None = arguments.screen_pid
    lines_only = wants_accessible(arguments)
    if no_terminal() and not (lines_only and pid is not None):
        instead = f"locktop snapshot -p {pid}" if pid is not None else "locktop list"
        raise LocktopError(f"the screen needs a terminal; {no_terminal()} use `{instead}`")
    if pid is not None:
        return watch(attached(pid, arguments), arguments)
    if lines_only:
        raise LocktopError("choose a process of `locktop list`, then `locktop -p PID`")
    from locktop.tui.screens.process_picker import pick

    source, status = pick(
        arguments.theme,
        lambda chosen: attached(chosen, arguments),
        options.input_options(arguments),
    )
    return watch(source, arguments) if source is not None else status


def watch(
    source: Source,
    arguments: argparse.Namespace,
    call_tree: tuple[str, bool] | None = None,
    launched: LaunchedProgram | None = None,
    asks_at_quit: bool = False,
    mark_listener: Callable[[Notable], None] | None = None,
    first_view: str = "",
) -> int:
    """Show ``source`` on the screen, and close it; return the exit status.

    Args:
        source: the process.
        arguments: those of the command line.
        call_tree: see LocktopApp.
        launched: the program, if locktop started it.
        asks_at_quit: whether the user chooses at the end what becomes of the program.
        mark_listener: gets each mark of the user.
        first_view: begin with this view of an extension.
    """
    if wants_accessible(arguments):
        from locktop.tui import accessible

        try:
            return accessible.run(source, arguments.rate, options.history(arguments))
        finally:
            source.close()
    start = options.screen_start(arguments)
    # Modules stay. To search them for garbage takes a tenth of the time to the first snapshot.
    gc.disable()
    from locktop.tui.app import LocktopApp
    from locktop.tui.feed import PollerFeed
    from locktop.tui.themed_app import run_app

    history = options.history(arguments)
    if history is not None:
        history.mark_listener = mark_listener
    feed = PollerFeed(source, history)
    try:
        warnings: list[str] = list(arguments.settings_problems)
        feed.suppressions = options.suppressions(arguments, warnings.append)
        app = LocktopApp(
            feed,
            arguments.theme,
            rate=arguments.rate,
            call_tree=call_tree,
            is_own_program=launched is not None,
            leave_running=launched.leave_running if launched and asks_at_quit else None,
            moments=history,
            first_view=first_view,
            input_options=options.input_options(arguments),
            start=start,
            attach=None if launched else lambda pid: attached(pid, arguments),
        )
        app.meter.synchronized = arguments.settings.synchronized
        app.add_warnings(warnings)
        status = run_app(app, launched=launched)
    finally:
        feed.stop()
    return watch(app.next_source, arguments) if app.next_source is not None else status
