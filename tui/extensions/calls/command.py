"""``locktop calls``: the function calls of a program built with -finstrument-functions."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.calls.formats import CALLS_FORMATS, SCREEN_FORMATS
from locktop.tui.commands import recorded
from locktop.tui.commands.options import (
    add_scan_options,
    add_screen,
    attached,
    has_terminal,
    input_options,
    seconds,
)
from locktop.tui.commands.output import (
    add_format,
    add_output,
    announced,
    destination,
    text_width,
    write,
)

if TYPE_CHECKING:
    from locktop.collector.extensions.calls.calls_profile import CallsProfile
    from locktop.collector.model import Snapshot
    from locktop.collector.recording.chosen_moment import Span

NAME = "calls"
GROUP = "look"
HELP = "function calls of an instrumented program, their times and waits"
DESCRIPTION = """\
Shows the function calls of a program that was built with -finstrument-functions and runs with the
library: a list of functions, then the call tree. For each there are the number of calls, the time
with callees (total) and without (own), and the wait for locks inside.

The figures are those since the process started. With -d they are those of these seconds. FILE is a
recording, or a snapshot that `locktop snapshot --calls` has saved. Of a recording the command shows
the calls up to its end or up to --at T, or with --from T and --to T those of that span.

On a terminal the tree opens on the screen, unless --format, --flat, --tid, -d or -o is given.

exit status: 0; 2 if there are no function calls."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    recorded.add_file(parser, "or a recording, or a saved snapshot")
    parser.add_argument(
        "-d", "--duration", type=seconds, metavar="SECONDS", help="only the calls of this time"
    )
    parser.add_argument(
        "--tid",
        type=_tid,
        metavar="N",
        help="one thread (0: all threads that have ended); default all together",
    )
    parser.add_argument(
        "--flat", action="store_true", help="only the list of functions, without the tree"
    )
    add_format(parser, CALLS_FORMATS, None)
    add_scan_options(parser)
    add_output(parser)
    add_screen(parser)


def _tid(text: str) -> int:
    """A thread id, or 0."""
    if not (text.isdecimal() and len(text) < 12):
        raise argparse.ArgumentTypeError(f"{text!r} is not a thread id")
    return int(text)


def execute(arguments: argparse.Namespace) -> int:
    """Show the function calls, or write them."""
    recorded.check_use(arguments, NAME)
    explicit = (arguments.format, arguments.output, arguments.tid, arguments.duration)
    if all(option is None for option in explicit) and not arguments.flat and has_terminal():
        return _show(arguments)
    path = destination(arguments)
    form = CALLS_FORMATS[arguments.format or CALLS_FORMATS.default]
    data = form.render(_profile(arguments), arguments.flat, text_width())
    write(announced(data, form, arguments), path, arguments)
    return 0


def _show(arguments: argparse.Namespace) -> int:
    if arguments.file is None:
        from locktop.tui.commands.attach import watch

        _check_counted(arguments.pid)
        return watch(attached(arguments.pid, arguments), arguments, first_view=NAME)
    calls_profile = _profile(arguments)
    from locktop.tui.app import CallTreeApp
    from locktop.tui.themed_app import run_app

    return run_app(
        CallTreeApp(
            calls_profile,
            arguments.theme,
            formats=SCREEN_FORMATS,
            input_options=input_options(arguments),
        )
    )


def _profile(arguments: argparse.Namespace) -> CallsProfile:
    """Return the calls that the user asks for. Raises LocktopError if there are none."""
    from locktop.collector.extensions.calls.calls_profile import CallsProfile
    from locktop.collector.extensions.calls.model import calls_of

    if arguments.file is None:
        span = _scan_calls(arguments)
    else:
        span = recorded.scanned(arguments, with_section=NAME)
    snapshot = span.snapshot
    if not calls_of(snapshot):
        if arguments.file is None:
            _check_counted(arguments.pid)
            raise LocktopError(_no_calls_text(snapshot))
        raise LocktopError(f"{arguments.file}: there are no function calls in it")
    if arguments.file is not None and span.before is not None and not calls_of(span.before):
        raise LocktopError(f"{arguments.file}: there are no function calls at --from")
    calls_profile = CallsProfile(snapshot, arguments.tid, span.before)
    if not calls_profile.calls.threads:
        raise LocktopError(f"there are no function calls of thread {arguments.tid}")
    return calls_profile


def _no_calls_text(snapshot: Snapshot) -> str:
    """Return the line on a process whose snapshot has no function calls."""
    from locktop.collector.extensions.calls import switch
    from locktop.collector.extensions.calls.calls_profile import NO_CALLS

    process = f"{snapshot.process.comm} {snapshot.process.pid}"
    names = switch.calls_match(snapshot.process.pid)
    if not names:
        return f"{process} has {NO_CALLS}"
    return (
        f"{process} has no function calls that LOCKTOP_CALLS_MATCH={names} names; the names are"
        " those of the symbol table, and the program must be built with -finstrument-functions"
    )


def _scan_calls(arguments: argparse.Namespace) -> Span:
    from locktop.collector.recording.chosen_moment import Span

    source = attached(arguments.pid, arguments)
    source.want_section(NAME, True)
    try:
        before = None
        if arguments.duration:
            # The names take time, so the interval begins afterwards.
            source.scan(resolve=True)
            before = source.scan()
            time.sleep(arguments.duration)
        return Span(source.scan(resolve=True), before)
    finally:
        source.close()


def _check_counted(pid: int) -> None:
    """Raise LocktopError if the library was told to count no calls."""
    from locktop.collector.extensions.calls import switch

    try:
        counted = switch.counts_calls(pid)
    except LocktopError:
        return  # without the library, the caller says what to do
    if not counted:
        raise LocktopError(
            f"function calls are off; `locktop ctl -p {pid} --calls on` counts them from now on"
        )
