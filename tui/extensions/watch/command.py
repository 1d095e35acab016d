"""``locktop watch``: alerts for deadlocks and long waits, without a screen."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from locktop.collector.errors import LocktopError
from locktop.tui.commands import options
from locktop.tui.commands.options import (
    add_history,
    add_pid,
    add_scan_options,
    attached,
    duration,
)

if TYPE_CHECKING:
    from locktop.collector.extensions.watch.watcher import Watcher
    from locktop.collector.recording.memory_keeper import MemoryKeeper
    from locktop.collector.sources.attach import Source

NAME = "watch"
GROUP = "keep"
HELP = "an alert when threads deadlock or wait too long"
DESCRIPTION = """\
Watches a process without a screen. An alert is one line, a snapshot with --snapshot-dir, and a
command, which gets the line as its input. A certain deadlock is always an alert. A long wait is an
alert if it is in contention and not for work. Idle rules decide that, as on the screen: those of
--idle-matching, of ~/.config/locktop/idle.rules and of locktop. A wait that goes on is one alert.

/bin/sh runs CMD, with the variables LOCKTOP_ALARM (deadlock or wait), LOCKTOP_PID, LOCKTOP_TID,
LOCKTOP_LOCK, LOCKTOP_WAITED (seconds) and LOCKTOP_SNAPSHOT. CMD does not start again while it
runs. When its time is over or its first process ends, locktop ends CMD and all that CMD started.

SIGUSR2 saves a snapshot in the directory of --snapshot-dir, else in the working directory. The
command goes on until the process ends, or SIGTERM or SIGINT. exit status: 0; 1 with --once
after an alert; 2 the process cannot be watched."""


class _OnWait(argparse.Action):
    """A duration and a command."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        assert values is not None
        try:
            setattr(namespace, self.dest, (duration(values[0]), values[1]))
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentError(self, str(error)) from None


def rate(text: str) -> tuple[int, float]:
    """A number and its period in seconds: 1/60s."""
    count, _, period = text.partition("/")
    if not re.fullmatch(r"[1-9]\d{0,5}", count) or not period:
        raise argparse.ArgumentTypeError(f"{text!r} is not a rate; 1/60s and 5/1h are")
    return int(count), duration(period)


def _number(text: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,5}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above nought")
    return int(text)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_pid(parser)
    add_scan_options(parser)
    parser.add_argument("--on-deadlock", metavar="CMD", help="run CMD at a certain deadlock")
    parser.add_argument(
        "--on-wait",
        nargs=2,
        action=_OnWait,
        metavar=("TIME", "CMD"),
        help="run CMD when a thread has waited in contention for longer than TIME (500ms, 5s,"
        ' 2m); with "" as CMD the alert is only printed',
    )
    parser.add_argument(
        "--snapshot-dir", type=Path, metavar="DIR", help="save a snapshot (JSON) at each alert"
    )
    parser.add_argument(
        "--record-on-alert",
        action="store_true",
        help="save a recording of the last 15 minutes beside each snapshot, for `locktop replay`",
    )
    add_history(parser)
    parser.add_argument(
        "--keep",
        type=_number,
        default=20,
        metavar="N",
        help="keep the newest N of these snapshots (default 20; never more than 500 MB)",
    )
    parser.add_argument(
        "--rate",
        dest="alert_rate",
        type=rate,
        default=(1, 60.0),
        metavar="N/TIME",
        help="at most N alerts of a kind in any such time (default 1/60s); further ones come later"
        " if they go on, else they are counted",
    )
    parser.add_argument(
        "--limit",
        type=duration,
        default=60.0,
        metavar="TIME",
        help="how long a command may run (default 60s)",
    )
    parser.add_argument(
        "--every", type=duration, default=0.5, metavar="TIME", help="between scans (default 500ms)"
    )
    parser.add_argument("--once", action="store_true", help="end after the first alert")


def execute(arguments: argparse.Namespace) -> int:
    """Watch the process until its end, a signal, or with --once the first alert."""

    _check_directory(arguments.snapshot_dir)
    _check_recording(arguments)
    source = attached(arguments.pid, arguments)
    memory = _memory(source, arguments)
    try:
        # Names that are resolved now need no time at the first alert.
        process = source.scan(resolve=True).process
        watching = _watching(source, arguments, memory)
        watching.handle_signals()
        print(f"watching {process.comm} {process.pid}", file=sys.stderr, flush=True)
        watching.run(arguments.every)
    finally:
        if memory is not None:
            memory.close()
        source.close()
    return 1 if arguments.once and watching.count else 0


def _check_directory(directory: Path | None) -> None:
    """Check the directory before the first alert needs it. Raises LocktopError."""
    if directory is not None and not directory.is_dir():
        raise LocktopError(f"{directory}: no such directory")
    if directory is not None and not os.access(directory, os.W_OK | os.X_OK):
        raise LocktopError(f"{directory}: cannot be written to")


def _check_recording(arguments: argparse.Namespace) -> None:
    """Check the options of the recording. Raises LocktopError."""
    if arguments.record_on_alert and arguments.snapshot_dir is None:
        raise LocktopError("--record-on-alert needs --snapshot-dir DIR")
    if arguments.record_on_alert and not arguments.history:
        raise LocktopError("--record-on-alert needs a memory; leave out --history 0")


def _memory(source: Source, arguments: argparse.Namespace) -> MemoryKeeper | None:
    history = options.history(arguments) if arguments.record_on_alert else None
    if history is None:
        return None
    from locktop.collector.recording.memory_keeper import MemoryKeeper

    return MemoryKeeper(source, history)


def _watching(
    source: Source, arguments: argparse.Namespace, memory: MemoryKeeper | None
) -> Watcher:
    from locktop.collector.extensions.watch.watcher import WatchOptions, watcher_of

    wait_s, on_wait = arguments.on_wait or (None, None)
    options = WatchOptions(
        on_deadlock=arguments.on_deadlock,
        on_wait=on_wait,
        wait_s=wait_s,
        command_limit_s=arguments.limit,
        alert_rate=arguments.alert_rate,
        directory=arguments.snapshot_dir,
        kept_snapshots=arguments.keep,
        once=arguments.once,
    )
    return watcher_of(source, options, memory)
