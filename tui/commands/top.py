"""``locktop top``: the lists of locks or threads as plain lines, as `top -b` prints them."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING

from locktop.collector.errors import LocktopError
from locktop.tui.commands.options import (
    add_pid,
    add_scan_options,
    add_screen,
    add_suppressions,
    attached,
    screen_start,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from locktop.collector.render.words.snapshot_index import SnapshotIndex
    from locktop.collector.sources.attach import Source
    from locktop.tui.views.plain_table import TableChoice

NAME = "top"
GROUP = "look"
HELP = "the lists as plain lines (--batch), or the screen"
DESCRIPTION = """\
With --batch: prints a part for each scan, without escape codes: a line about the process, the
headline, and the list. The first part has the figures since the start of the counting. Without
--batch this is `locktop -p PID`. The variable COLUMNS sets the width (default 80 where the output
is no terminal). SIGUSR2 saves a snapshot (JSON) in the working directory."""


def _number(text: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,8}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above nought")
    return int(text)


def _pause(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.1 <= number <= 86400.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0.1 to 86400")
    return number


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_pid(parser)
    parser.add_argument("--batch", "-b", action="store_true", help="plain lines, no screen")
    parser.add_argument("-n", type=_number, metavar="N", help="end after N scans")
    parser.add_argument(
        "-d", type=_pause, default=2.0, metavar="S", help="seconds between scans (default 2)"
    )
    parser.add_argument("--idle", action="store_true", help="also rows that only wait for work")
    add_screen(parser)
    add_scan_options(parser)
    add_suppressions(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print the parts, or show the screen."""
    if not arguments.batch:
        from locktop.tui.commands import attach

        arguments.screen_pid = arguments.pid
        return attach.execute(arguments)
    from locktop.tui.views.plain_table import check

    choice = _choice(arguments)
    check(choice)
    with closing(attached(arguments.pid, arguments)) as source:
        _print_parts(source, choice, arguments.n, arguments.d)
    return 0


def _choice(arguments: argparse.Namespace) -> TableChoice:
    from locktop.collector.render.words.row_filter import parse
    from locktop.tui.screen_start import LISTS
    from locktop.tui.views.plain_table import TableChoice

    start = screen_start(arguments)
    if start.view not in LISTS:
        raise LocktopError(f"--batch prints a list: --view locks or threads, not {start.view}")
    return TableChoice(
        view=start.view,
        sort=start.sort,
        wanted=parse(start.filter),
        columns=start.columns.get(start.view, ()),
        shows_idle=arguments.idle,
    )


def _print_parts(source: Source, choice: TableChoice, count: int | None, pause_s: float) -> None:
    from locktop.collector.render.snapshot_signal import SnapshotSignal
    from locktop.collector.render.words.snapshot_index import SnapshotIndex

    due, printed = time.monotonic(), 0
    on_demand = SnapshotSignal(lambda: None)  # the next scan answers
    on_demand.install()
    while True:
        snapshot = source.scan(resolve=True)
        if line := on_demand.save(snapshot):
            print(line, file=sys.stderr, flush=True)
        width = shutil.get_terminal_size((80, 24)).columns
        print(*_part(SnapshotIndex(snapshot), choice, width), "", sep="\n", flush=True)
        printed += 1
        if snapshot.ended or printed == count:
            return
        due = max(due + pause_s, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))


def _part(index: SnapshotIndex, choice: TableChoice, width: int) -> Iterator[str]:
    from locktop.tui.views.banner import banner
    from locktop.tui.views.headline import headline
    from locktop.tui.views.plain_table import table_lines
    from locktop.tui.views.status import process_line
    from locktop.tui.views.styled_line import line_text

    yield f"{index.snapshot.taken_at}{process_line(index.snapshot)}"
    lines = banner(index, sys.maxsize, width) or (headline(index, width),)
    yield from (line_text(line).strip() for line in lines)
    yield from table_lines(index, choice, width)
