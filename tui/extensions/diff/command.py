"""``locktop diff``: what changed between two snapshots, recordings or spans of one."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, NamedTuple

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.diff.formats import DIFF_FORMATS
from locktop.tui.commands import recorded
from locktop.tui.commands.output import add_format, add_output, destination, write

if TYPE_CHECKING:
    from locktop.collector.extensions.diff.model import Side

NAME = "diff"
GROUP = "keep"
HELP = "what changed between two snapshots, recordings or spans of one"
DESCRIPTION = """\
Compares the locks of A and B: rates per second, per wait, per hold, and per transaction if both
have marks. A and B are saved snapshots or recordings. FILE@FROM..TO is a span of a recording: FROM
and TO are times as of --from and --to, and either may be missing.

Locks are the same if they have the same kind, and the same name but for numbers. A difference of
recordings has an interval of 95 %, if both have at least 8 independent pieces.

exit status: 0; 2 for files that cannot be compared."""
_FORM = "the form is FILE@FROM..TO"


class Operand(NamedTuple):
    """One of the two that the user names: a file, or a span of a recording."""

    text: str
    path: str
    begin: str | None = None
    end: str | None = None
    is_span: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    for name, meaning in (("A", "before: FILE, or FILE@FROM..TO"), ("B", "after: the same")):
        parser.add_argument(name.lower(), metavar=name, help=meaning)
    add_format(parser, DIFF_FORMATS, DIFF_FORMATS.default)
    add_output(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Write what changed."""
    from locktop.collector.extensions.diff.compare import compare

    path = destination(arguments)
    comparison = compare(*(side(operand(text)) for text in (arguments.a, arguments.b)))
    write(DIFF_FORMATS.render(arguments.format, comparison), path, arguments)
    return 0


def operand(text: str) -> Operand:
    """Return what a text of the command line names. Raises LocktopError.

    A path that exists is one, also with an @ in it.
    """
    path, sign, times = text.rpartition("@")
    if not sign or os.path.lexists(text):
        return Operand(text, text)
    begin, dots, end = times.partition("..")
    if not path or not dots:
        raise LocktopError(f"{text}: no such file, and no span; {_FORM}")
    return Operand(text, path, begin or None, end or None, is_span=True)


def side(wanted: Operand) -> Side:
    """Read one side. Raises LocktopError if it cannot be compared."""
    from locktop.collector.extensions.diff import sides

    if recorded.is_recording(wanted.path):
        with recorded.opened(wanted.path) as recording:
            try:
                return sides.side_of_recording(recording, wanted.begin, wanted.end, wanted.text)
            except LocktopError as error:
                raise LocktopError(f"{wanted.text}: {error}") from None
    from locktop.collector.render.open_profile import open_snapshot

    recorded.refuse_core(wanted.path)
    snapshot = open_snapshot(wanted.path)
    if wanted.is_span:
        raise LocktopError(f"{wanted.path} is a snapshot; only a recording has spans")
    return sides.side_of_snapshot(snapshot, wanted.text)
