"""``locktop run -- CMD``: start a program with the library and watch it."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from locktop.collector.errors import LocktopError
from locktop.tui.commands.options import (
    add_idle_matching,
    add_level,
    add_screen,
    add_suppressions,
    duration,
    no_terminal,
    rules,
    wants_accessible,
)
from locktop.tui.commands.record import add_limits
from locktop.tui.exit_status import EXIT_SCREEN_FAULT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from locktop.collector.config.idle_rules_file import Rules
    from locktop.collector.recording.recorder import RecordingPath
    from locktop.collector.sources.attach import Source
    from locktop.collector.sources.launched_program import LaunchedProgram

NAME = "run"
GROUP = "look"
HELP = "start a program with the library and watch it"
DESCRIPTION = """\
Starts CMD with the library and shows it on the screen. The output of CMD goes to a file,
and the command prints its path at the end. The standard input of CMD is empty, whatever locktop's
own is: `locktop run -- sh -c 'CMD < FILE'` gives it one. When CMD ends, its last snapshot stays
until q. While CMD runs, q asks whether CMD ends too. CMD then gets SIGTERM, and SIGKILL five
seconds later. SIGTERM for locktop ends CMD too. CMD goes on if the terminal is lost, or if the
screen fails.

The screen watches CMD itself. If CMD is a shell and threads of its child wait, the screen names the
child, for `locktop -p PID`.

--record also writes a recording, see `locktop record --help`. If LOCKTOP_RING is not set, each
thread then keeps more records in memory. With --record the command needs no terminal: it then
records without a screen until CMD ends. A full disk ends the recording, and CMD goes on.

exit status: that of CMD (128 + N if signal N ended CMD), also if CMD ended before the first scan;
0 if closing the screen ended CMD or left it running; 2 if CMD could not be started or watched;
70 if the screen failed."""

#: Records that a thread of a recorded program keeps; its ring takes 256 KB.
_RING_OF_RECORDED = 4096


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_level(parser)
    add_screen(parser)
    add_idle_matching(parser)
    add_suppressions(parser)
    parser.add_argument(
        "--record", type=Path, metavar="F", help="record to a new file, or a directory"
    )
    add_limits(parser)
    parser.add_argument(
        "--record-keep",
        type=duration,
        metavar="TIME",
        help="keep at least the last TIME (10m, 2h) of the recording, in a directory of segments",
    )
    parser.add_argument("--output", metavar="FILE", help="where CMD's output goes: a new file")
    at_end = parser.add_mutually_exclusive_group()
    at_end.add_argument(
        "--keep", action="store_true", help="leave CMD running when the screen is closed"
    )
    at_end.add_argument(
        "--end-with-screen", action="store_true", help="end CMD also if the terminal is lost"
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- CMD", help="the program")


def execute(arguments: argparse.Namespace) -> int:
    """Start the program, watch it and end it; return the exit status."""
    from locktop.collector.sources import launch

    command: list[str] = arguments.command
    if command[:1] == ["--"]:
        command = command[1:]
    if not command:
        raise LocktopError("no program given; use `locktop run -- CMD [ARGUMENT...]`")
    program = launch.check_program(command)
    if arguments.record is not None:
        _destination(arguments).check()
        # Records that come between two looks at the rings must not be overwritten.
        os.environ.setdefault("LOCKTOP_RING", str(_RING_OF_RECORDED))
    elif arguments.max_size is not None or arguments.record_keep is not None:
        raise LocktopError("--max-size and --record-keep need --record F")
    elif no_terminal() and not wants_accessible(arguments):
        raise LocktopError(
            f"`locktop run` needs a terminal; {no_terminal()} use "
            '`eval "$(locktop env)"`, start the program, then `locktop snapshot -p PID`'
        )
    return watch_started(program, command, arguments)


def watch_started(program: str, command: list[str], arguments: argparse.Namespace) -> int:
    """Run ``command`` under the screen."""
    from locktop.collector.sources.launched_program import LaunchedProgram

    failure, has_fault = None, False
    idle_rules = rules(arguments)
    with LaunchedProgram(
        program,
        command,
        arguments.level,
        arguments.output,
        arguments.keep,
        arguments.end_with_screen,
    ) as started:
        try:
            has_fault = _screen_fails(started, idle_rules, arguments)
        except LocktopError as error:
            failure = error
        if has_fault:
            started.leave_running()
    status = report_end(started, failure)
    return EXIT_SCREEN_FAULT if has_fault else status


def _screen_fails(
    started: LaunchedProgram, idle_rules: Rules, arguments: argparse.Namespace
) -> bool:
    """Show the program; return whether the screen failed. Raises LocktopError."""
    from locktop.tui.commands.attach import watch

    try:
        with _starting(arguments.command) as draw:
            source = started.source(idle_rules, draw)
        if arguments.record is None:
            status = watch(source, arguments, launched=started, asks_at_quit=not arguments.keep)
        else:
            status = _record(source, started, arguments)
    except LocktopError:
        raise
    except Exception:
        traceback.print_exc()
        return True
    return status == EXIT_SCREEN_FAULT


@contextlib.contextmanager
def _starting(command: Sequence[str]) -> Iterator[Callable[[], None]]:
    """Say on the terminal that a program starts, and for how long; clear the line at the end.

    Yields:
        a function that draws the seconds.
    """
    from locktop.tui.views.cells import plain

    name = next((part for part in command if part != "--"), "")
    began, drawn = time.monotonic(), ""

    def draw() -> None:
        nonlocal drawn
        seconds = int(time.monotonic() - began)
        text = f"Starting {plain(name)}..." + (f" {seconds} s" if seconds else "")
        if text != drawn and sys.stderr.isatty():
            drawn = text
            _write_line(text)

    draw()
    try:
        yield draw
    finally:
        if drawn:
            _write_line("")


def _write_line(text: str) -> None:
    width = max(20, shutil.get_terminal_size().columns - 1)
    with contextlib.suppress(OSError):  # the terminal may be lost
        print(f"\r{text[:width]:<{width}}\r", end="", file=sys.stderr, flush=True)


def _destination(arguments: argparse.Namespace) -> RecordingPath:
    from locktop.collector.recording.recorder import RecordingPath

    return RecordingPath(arguments.record, arguments.max_size, arguments.record_keep)


def _record(source: Source, started: LaunchedProgram, arguments: argparse.Namespace) -> int:
    """Record the program, beside the screen if there is a terminal. Raises LocktopError."""
    from locktop.collector.recording.record_loop import RecordLoop
    from locktop.collector.recording.recorded_source import RecordedSource
    from locktop.collector.recording.recorder import Recorder
    from locktop.tui.commands.attach import watch
    from locktop.tui.commands.record import report, say

    recorder = Recorder(source, _destination(arguments))
    try:
        if not no_terminal() or wants_accessible(arguments):
            status = watch(
                RecordedSource(source, recorder),
                arguments,
                launched=started,
                asks_at_quit=not arguments.keep,
                mark_listener=recorder.add_mark,
            )
            if recorder.problem:
                say(f"locktop: {recorder.problem}")
            return status
        loop = RecordLoop(source, recorder, say)
        try:
            loop.run(1.0 / arguments.rate)
        except LocktopError as error:
            if not recorder.figures.snapshots:
                raise
            # The program must not end because the disk is full.
            say(f"locktop: {error}")
            loop.wait(started.has_ended)
        finally:
            source.close()
        return 0
    finally:
        report(recorder)


def report_end(started: LaunchedProgram, failure: LocktopError | None) -> int:
    """Print how the program ended and where its output is; return the exit status.

    ``failure``: why the program could not be watched.
    """
    from locktop.collector.sources.launched_program import EndedEarlyError
    from locktop.tui.views.cells import plain

    lines = started.messages() if failure is None else [str(failure), *started.output_messages()]
    with contextlib.suppress(OSError):  # the terminal may be lost
        for line in lines:
            print(f"locktop: {plain(line)}", file=sys.stderr, flush=True)
    # An early end is no failure: a script needs the status of the program.
    return started.status if failure is None or isinstance(failure, EndedEarlyError) else 2
