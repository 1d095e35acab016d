"""Where a command writes its result: `-o FILE`, else the standard output."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from locktop.collector.errors import LocktopError
from locktop.collector.render.formats import WIDTH, OutputFormat, ResultFormats
from locktop.tui.commands.command_parser import FURTHER, group


def add_output(parser: argparse.ArgumentParser) -> None:
    """Declare ``-o`` and ``--force``."""
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="a new file; - is the standard output (default)"
    )
    further = group(parser, FURTHER)
    further.add_argument("--force", action="store_true", help="replace FILE if it exists")


def add_format(
    parser: argparse.ArgumentParser, formats: ResultFormats[Any], default: str | None
) -> None:
    """Declare ``--format``. A command that must know whether it was given has no default."""
    parser.add_argument("--format", choices=formats.names, default=default, help=formats.help)


def destination(arguments: argparse.Namespace) -> Path | None:
    """Return the file, None for the standard output.

    Raises LocktopError if the file cannot be written, before there is a result to lose.
    """
    from locktop.collector.render import files

    if arguments.output == "":
        raise LocktopError("-o needs the name of a file, or - for the standard output")
    path = Path(arguments.output) if arguments.output not in (None, "-") else None
    reason = files.why_not(path, arguments.force) if path is not None else None
    if reason is not None:
        raise LocktopError(reason)
    return path


def write(data: bytes | Iterable[bytes], path: Path | None, arguments: argparse.Namespace) -> None:
    """Write ``data``, or its pieces, to ``path``, None for the standard output.

    Raises LocktopError.
    """
    from locktop.collector.render import files

    if path is None:
        sys.stdout.buffer.writelines((data,) if isinstance(data, bytes) else data)
        sys.stdout.buffer.flush()
        return
    try:
        files.write_file(path, data, replace=arguments.force)
    except files.NotWrittenError as error:
        raise LocktopError(str(error)) from None


def announced(data: bytes, form: OutputFormat[Any], arguments: argparse.Namespace) -> bytes:
    """Return a text with the alert of --at as its first line.

    Beside a form that programs read, the standard error gets that line.

    Args:
        data: the result of the command.
        form: that of the result.
        arguments: those of the command line, see recorded.announce().
    """
    if not arguments.announced:
        return data
    if not form.is_prose:
        print(arguments.announced, file=sys.stderr, flush=True)
        return data
    return f"{arguments.announced}\n\n".encode("utf-8", "backslashreplace") + data


def text_width() -> int:
    """Return the columns of text: those of the terminal, 100 for a file or a pipe."""
    return max(60, shutil.get_terminal_size().columns) if sys.stdout.isatty() else WIDTH
