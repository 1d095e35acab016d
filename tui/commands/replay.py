"""``locktop replay``: a recording on the screen."""

from __future__ import annotations

import argparse
import gc
from contextlib import closing
from pathlib import Path

from locktop.collector.errors import LocktopError
from locktop.tui.commands import options, recorded

NAME = "replay"
GROUP = "keep"
HELP = "a recording or a core on the screen: play, step, jump to alerts"
DESCRIPTION = """\
Shows a recording on the same screen as a live process, with the same keys. Keys of the past: [ and
] go one snapshot back and forth, { and } to the alert or mark before and after. p or Space plays
and pauses, + and - change the speed. The key : asks for a time (12:03:04, -35s, +10m or 50%). Home
and End go to the first and the last moment. FILE is a recording, or a directory with its parts.

FILE may be a core dump, too; `locktop CORE` is the same. The screen has no time then, and what
needs a process says so.

exit status: 0; 2 if FILE is no recording, or without a terminal."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("file", type=Path, metavar="FILE", help="the recording")
    parser.add_argument("--at", metavar="T", help="begin at this time (default the first moment)")
    options.add_theme(parser)
    options.add_mouse(parser)
    options.add_lists(parser)
    # Without this argparse takes -35s for an option.
    parser._negative_number_matcher = options.BEFORE_THE_END


def execute(arguments: argparse.Namespace) -> int:
    """Show the recording."""
    from locktop.collector.recording.segments import open_recording

    if recorded.is_core(str(arguments.file)):
        return _show_core(arguments)
    start = options.screen_start(arguments)
    with closing(open_recording(arguments.file)) as recording:
        if not recording.times_ns():
            raise LocktopError(f"{arguments.file}: there is no snapshot in this recording")
        if options.no_terminal():
            raise LocktopError(
                f"the screen needs a terminal; {options.no_terminal()} use"
                f" `locktop snapshot {arguments.file} --at TIME`"
            )
        # Modules stay: to search them for garbage takes time before the first snapshot.
        gc.disable()
        from locktop.tui.app import LocktopApp
        from locktop.tui.feed import ReplayFeed
        from locktop.tui.themed_app import run_app

        app = LocktopApp(
            ReplayFeed(),
            arguments.theme,
            moments=recording,
            is_replay=True,
            start=start,
            input_options=options.input_options(arguments),
        )
        if arguments.at is not None:
            app.begin_at(arguments.at)
        if recording.damage:
            app.add_warnings([f"{arguments.file}: {recording.damage}"])
        return run_app(app)


def _show_core(arguments: argparse.Namespace) -> int:
    """Show the process of a core. Raises LocktopError if locktop cannot read the core."""
    if arguments.at is not None:
        raise LocktopError("--at needs a recording")
    start = options.screen_start(arguments)
    with closing(recorded.core_source(arguments)) as source:
        snapshot = source.scan(resolve=True)
    if options.no_terminal():
        raise LocktopError(
            f"the screen needs a terminal; {options.no_terminal()} use"
            f" `locktop check {arguments.file}` or `locktop snapshot {arguments.file}`"
        )
    gc.disable()
    from locktop.tui.app import LocktopApp
    from locktop.tui.feed import CoreFeed
    from locktop.tui.themed_app import run_app

    app = LocktopApp(
        CoreFeed(snapshot),
        arguments.theme,
        start=start,
        input_options=options.input_options(arguments),
    )
    return run_app(app)
