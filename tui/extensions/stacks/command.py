"""``locktop stacks``: all threads with their stacks, equal stacks as one group."""

from __future__ import annotations

import argparse
from contextlib import closing
from typing import TYPE_CHECKING

from locktop.collector.extensions.stacks.formats import STACKS_FORMATS
from locktop.tui.commands import options, recorded
from locktop.tui.commands.output import (
    add_format,
    add_output,
    announced,
    destination,
    text_width,
    write,
)

if TYPE_CHECKING:
    from locktop.collector.extensions.stacks.model import AllStacks

NAME = "stacks"
GROUP = "look"
HELP = "every thread with its stack, equal stacks as one group"
DESCRIPTION = """\
Prints every thread of a process with its stack now: what it does or waits for, since when, and who
has it. Threads with equal stacks are one group. The stacks have functions of C, C++, Rust and
Python. A thread whose stack cannot be read has the reason in its place.

No thread stops: a sleeping thread is read from outside, and the kernel takes a sample of a running
one. --stop-threads stops a thread for 0.1 to 0.2 ms if its stack cannot be known otherwise.

FILE is a snapshot or a recording, which has the stacks that its scans have read, or a core dump."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    recorded.add_moment(parser, recorded.FILE_OR_CORE)
    options.add_scan_options(parser)
    add_format(parser, STACKS_FORMATS, STACKS_FORMATS.default)
    add_output(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Write the stacks."""
    recorded.check_use(arguments, NAME)
    path = destination(arguments)
    form = STACKS_FORMATS[arguments.format]
    page = form.render(_stacks(arguments), text_width())
    write(announced(page, form, arguments), path, arguments)
    return 0


def _stacks(arguments: argparse.Namespace) -> AllStacks:
    from locktop.collector.extensions.stacks import groups, reading

    if arguments.file is not None:
        return groups.find(recorded.scanned(arguments).snapshot)
    with closing(options.attached(arguments.pid, arguments)) as source:
        return reading.read(source)
