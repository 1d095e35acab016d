"""``locktop doctor``: what can and cannot be seen here, why, and what would change it."""

from __future__ import annotations

import argparse

from locktop.collector.render.formats import DIAGNOSIS_FORMATS
from locktop.tui.commands.options import add_pid_or
from locktop.tui.commands.output import add_output, destination, text_width, write

NAME = "doctor"
GROUP = "look"
HELP = "what locktop can see of a process, why not more, what helps"
DESCRIPTION = """\
Says what locktop can and cannot see of a process, why, and what would change that. Without -p the
command says what this machine and this user allow for any process. The process is scanned once, as
the screen would scan it.

Exit status: 0 all is seen, 3 a part is seen, 2 the process cannot be watched."""

_STATUSES = {"ok": 0, "limited": 3, "no": 2}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_pid_or(parser)
    parser.add_argument(
        "--format", choices=DIAGNOSIS_FORMATS.names, default=DIAGNOSIS_FORMATS.default
    )
    add_output(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print the diagnosis."""
    from locktop.collector.sources.doctor.process_checks import diagnose

    path = destination(arguments)
    diagnosis = diagnose(arguments.pid)
    write(DIAGNOSIS_FORMATS.render(arguments.format, diagnosis, text_width()), path, arguments)
    return _STATUSES[diagnosis.sight.value]
