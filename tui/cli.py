"""The command line: the commands, and how errors are reported.

Neither this module nor the top of a command imports anything large: `locktop --help` must be quick.
"""

from __future__ import annotations

import argparse
import errno
import gc
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn

from locktop.collector.errors import LocktopError
from locktop.collector.extension.discovery import installed
from locktop.tui.commands import (
    attach,
    callers,
    check,
    config,
    ctl,
    demo,
    doctor,
    env,
    list_processes,
    options,
    record,
    recorded,
    replay,
    run,
    snapshot,
    timeline,
    top,
)
from locktop.tui.commands.command_parser import RootParser
from locktop.tui.exit_status import EXIT_HANG_UP, EXIT_INTERRUPTED, EXIT_PIPE_CLOSED
from locktop.tui.extension import screen_extensions
from locktop.tui.terminal.lost_output import complain, discard, discard_if_lost, is_lost_terminal
from locktop.tui.terminal.lost_terminal import hang_up_reported

if TYPE_CHECKING:
    from locktop.tui.extension_parts import Command

_COMMANDS = (
    run,
    list_processes,
    top,
    snapshot,
    callers,
    timeline,
    check,
    doctor,
    record,
    replay,
    ctl,
    config,
    env,
    demo,
)
_DESCRIPTION = "Shows where the threads of a running process wait: for which locks, held by whom."
_EPILOG = """\
Without a command:

  locktop          pick a process from a list, those with stuck threads first
  locktop -p PID   watch a process; NAME in place of PID, if one process has it
  locktop CORE     look at a core dump

`locktop COMMAND --help` says more about each."""
#: The options of the screen that matter most.
_FEATURED = ("view", "sort", "filter", "columns", "theme", "rate", "history", "mouse")

#: New objects before Python's cycle collector examines the young objects. The modules and the first
#: scan make tens of thousands of objects that stay. Their examination takes a tenth of the start.
_NEW_OBJECTS_BEFORE_COLLECTION = 100_000


def _version() -> str:
    import locktop

    return f"locktop {locktop.__version__}"


class _Version(argparse.Action):
    """Prints the version, which only this option reads."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> NoReturn:
        print(_version())
        parser.exit()


def all_commands() -> Iterator[Command]:
    """Yield the commands, and those of extensions that have names of their own."""
    yield from _COMMANDS
    names = {command.NAME for command in _COMMANDS}
    for extension in screen_extensions():
        for command in extension.commands() if extension.commands is not None else ():
            if command.NAME not in names:
                names.add(command.NAME)
                yield command


def parser() -> RootParser:
    """The parser of the command line."""
    root_parser = RootParser(prog="locktop", description=_DESCRIPTION, epilog=_EPILOG)
    root_parser.add_argument(
        "--version", action=_Version, nargs=0, help="print the version and exit"
    )
    root_parser.featured = _FEATURED
    attach.add_arguments(root_parser)
    for command in all_commands():
        root_parser.add_command(command)
    options.set_defaults(root_parser)
    root_parser.set_defaults(execute=attach.execute)
    return root_parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status: 2 for wrong use or an unusable target."""
    gc.set_threshold(_NEW_OBJECTS_BEFORE_COLLECTION)
    try:
        return _status(argv)
    finally:
        discard_if_lost(sys.stderr)


def _status(argv: Sequence[str] | None) -> int:
    try:
        _check_streams()
        return _run(argv)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        discard(sys.stdout)
        return EXIT_PIPE_CLOSED
    except OSError as error:
        is_hang_up = any(is_lost_terminal(error, file) for file in (sys.stdout, sys.stderr))
        if error.filename is None:
            discard(sys.stdout)
        if is_hang_up:
            return EXIT_HANG_UP
        return complain(_os_error_text(error))
    except LocktopError as error:
        return complain(str(error))
    except Exception:
        import traceback

        # Python's own status of an exception is 1, which is an answer of `check`.
        return complain(traceback.format_exc().rstrip("\n"))


def _check_streams() -> None:
    """Open /dev/null for each standard stream that is closed.

    Without that the next file would get the number of the stream. Raises OSError if the standard
    output is closed.
    """
    has_output = sys.stdout is not None
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    if not has_output:
        raise OSError(errno.EBADF, "it is closed")


def _run(argv: Sequence[str] | None) -> int:
    try:
        whole, given = parser(), sys.argv[1:] if argv is None else argv
        if given and given[0].isdigit():
            whole.error(f"`locktop -p {given[0]}` shows that process")
        names = {command.NAME for command in all_commands()}
        if given and given[0] not in names and recorded.is_core_file(given[0]):
            given = [replay.NAME, *given]
        arguments = whole.parse_args(given)
        if arguments.screen_pid is not None and arguments.execute is not attach.execute:
            whole.error("-p before a command does not reach it; put it behind, or leave it out")
        options.apply_settings(arguments)
        for problem in (*installed().faults, *arguments.settings_problems):
            complain(problem)
        with hang_up_reported():
            status: int = arguments.execute(arguments)
    except SystemExit:  # of argparse, which may have printed the help
        sys.stdout.flush()
        raise
    sys.stdout.flush()
    return status


def _os_error_text(error: OSError) -> str:
    from locktop.collector.render.files import words

    # An error without the name of a file is of the standard output.
    return f"{error.filename or 'cannot write the output'}: {words(error)}"
