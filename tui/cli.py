"""The command line: what there is, and how errors come out.

Nothing heavy is imported here or at the top of the commands: `locktop --help` must be quick.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from locktop.tui.commands import attach, bench, check, ctl, demo, env, list_, run, snapshot

_COMMANDS = (run, list_, snapshot, check, ctl, env, bench, demo)
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
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_WRONG, f"locktop: {message}; see `{self.prog} --help`\n")


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
    made.set_defaults(execute=attach.execute)
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; gives the exit status: 2 for wrong use or an unusable target."""
    arguments = parser().parse_args(argv)
    try:
        status: int = arguments.execute(arguments)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _forget_output()
        return EXIT_PIPE_CLOSED
    except OSError as error:
        return _complain(_said(error))
    except Exception as error:
        from locktop.collector.errors import LocktopError

        if not isinstance(error, LocktopError):
            raise
        return _complain(str(error))


def _said(error: OSError) -> str:
    from locktop.tui.saving import words

    # What has no name is the standard output.
    return f"{error.filename or 'cannot write the output'}: {words(error)}"


def _complain(message: str) -> int:
    print(f"locktop: {message}", file=sys.stderr)
    return EXIT_WRONG


def _forget_output() -> None:
    """Nobody reads any more: do not fail again when Python flushes at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
