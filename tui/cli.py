"""The command line: what there is, and how errors come out.

Nothing heavy is imported here or at the top of the commands: `locktop --help` must be quick.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn, TextIO

from locktop.tui.commands import (
    attach,
    bench,
    callers,
    check,
    ctl,
    demo,
    env,
    list_processes,
    options,
    run,
    snapshot,
    watch,
)

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

_COMMANDS = (run, list_processes, snapshot, callers, check, watch, ctl, env, bench, demo)
_DESCRIPTION = "Shows where the threads of a running process wait: for which locks, held by whom."
_EPILOG = """\
without a command:
  locktop             pick a process from a list
  locktop -p PID      watch a process that runs with the library

`locktop COMMAND --help` says more about each."""

EXIT_WRONG = 2
EXIT_INTERRUPTED = 130
EXIT_PIPE_CLOSED = 141


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, also that its help could not be written."""

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Print it, as argparse does, which would keep an error to itself."""
        print(self.format_help(), end="", file=file)

    def error(self, message: str) -> NoReturn:
        self.exit(_complain(f"{message}; see `{self.prog} --help`"))


def _version() -> str:
    import locktop

    return f"locktop {locktop.__version__}"


class _Version(argparse.Action):
    """Prints the version; it is looked up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> NoReturn:
        print(_version())
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    made = _Parser(
        prog="locktop",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--version", action=_Version, nargs=0, help="say the version and exit")
    attach.add_arguments(made)
    commands = made.add_subparsers(title="commands", metavar="COMMAND")
    for command in _COMMANDS:
        sub = commands.add_parser(
            command.NAME,
            help=command.HELP,
            description=command.DESCRIPTION,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_arguments(sub)
        sub.set_defaults(execute=command.execute)
    options.set_defaults(made)
    made.set_defaults(execute=attach.execute)
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; gives the exit status: 2 for wrong use or an unusable target."""
    try:
        _check_streams()
        return _run(argv)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _forget(sys.stdout)
        return EXIT_PIPE_CLOSED
    except OSError as error:
        if error.filename is None:
            _forget(sys.stdout)
        return _complain(_os_error_text(error))
    except Exception as error:
        from locktop.collector.errors import LocktopError

        if isinstance(error, LocktopError):
            return _complain(str(error))
        import traceback

        # Not Python's own status for it: 1 is an answer of `check`.
        return _complain(traceback.format_exc().rstrip("\n"))


def _check_streams() -> None:
    """Python has None for a stream that is closed, and the next file gets its number. Raises
    OSError where that is the output."""
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
            whole.error(f"`locktop -p {given[0]}` looks at that process")
        arguments = whole.parse_args(given)
        if arguments.screen_pid is not None and arguments.execute is not attach.execute:
            whole.error("-p before a command does not reach it; put it behind, or leave it out")
        status: int = arguments.execute(arguments)
    except SystemExit:  # of argparse, which may have printed the help
        sys.stdout.flush()
        raise
    sys.stdout.flush()
    return status


def _os_error_text(error: OSError) -> str:
    from locktop.collector.export.files import words

    # What has no name is the standard output.
    return f"{error.filename or 'cannot write the output'}: {words(error)}"


def _complain(message: str) -> int:
    try:
        print(f"locktop: {message}", file=sys.stderr, flush=True)
    except OSError:
        _forget(sys.stderr)
    return EXIT_WRONG


def _forget(stream: TextIO) -> None:
    """Nothing more can be written there: let Python not fail again when it flushes at its end."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
