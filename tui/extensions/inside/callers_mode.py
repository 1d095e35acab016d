"""``locktop callers --inside``: what runs inside a lock."""

from __future__ import annotations

import argparse
from contextlib import closing
from typing import TYPE_CHECKING

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.inside.formats import INSIDE_FORMATS
from locktop.tui.commands import recorded
from locktop.tui.commands.options import attached, seconds
from locktop.tui.commands.output import announced, destination, text_width, write
from locktop.tui.extensions.inside.samples import add_frequency, profiled

if TYPE_CHECKING:
    from locktop.collector.model import Snapshot

OPTION = "--inside"
DESCRIPTION = """\
With --inside LOCK the command shows what runs inside a lock: which functions make its holds long.
It samples the threads that hold the lock for the time of -d. LOCK is a name, a part of one, an
address (0x...) or an id."""

#: Seconds of sampling.
_DURATION_S = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        OPTION, metavar="LOCK", help="the functions that run while threads hold this lock"
    )
    parser.add_argument(
        "-d",
        "--duration",
        type=seconds,
        metavar="SECONDS",
        help="with --inside: how long to sample (default 5)",
    )
    add_frequency(parser)


def execute(arguments: argparse.Namespace) -> int | None:
    """Write what runs inside the lock; return None without --inside."""
    from locktop.collector.render.words.named_lock import lock_named

    _check_samples(arguments)
    if arguments.inside is None:
        return None
    name = arguments.format or INSIDE_FORMATS.default
    if name not in INSIDE_FORMATS.names or arguments.function is not None:
        names = " or ".join(INSIDE_FORMATS.names)
        raise LocktopError(f"--inside goes with --format {names}, and without --function")
    path = destination(arguments)
    snapshot = _sample_holders(arguments) if arguments.file is None else _read_snapshot(arguments)
    lock = lock_named(snapshot.locks, arguments.inside)
    data = INSIDE_FORMATS.render(name, snapshot, lock, text_width())
    write(announced(data, INSIDE_FORMATS[name], arguments), path, arguments)
    return 0


def _check_samples(arguments: argparse.Namespace) -> None:
    """Refuse options that only samples of a process have."""
    if arguments.inside is not None and arguments.pid is not None:
        return
    for name, value in (("--hz", arguments.hz), ("-d", arguments.duration)):
        if value is not None:
            raise LocktopError(f"{name} needs --inside and -p PID")


def _sample_holders(arguments: argparse.Namespace) -> Snapshot:
    """Return the snapshot of a process after samples of the lock's holders."""
    from locktop.collector.render.words.named_lock import lock_named

    with closing(attached(arguments.pid, arguments)) as source:
        first = source.scan(resolve=True)
        if first.is_sampled:
            source.start_part("inside")  # raises the reason
        lock = lock_named(first.locks, arguments.inside)
        sampled = profiled(source, arguments.duration or _DURATION_S, arguments.hz, {lock.id})
        arguments.inside = str(lock.id)  # its name may have become another one
        return sampled


def _read_snapshot(arguments: argparse.Namespace) -> Snapshot:
    from locktop.collector.extensions.inside.model import profile_of

    snapshot = recorded.scanned(arguments).snapshot
    if profile_of(snapshot) is None:
        raise LocktopError(
            f"{arguments.file} has no samples; `locktop snapshot -p PID -d 5 --inside` takes them"
        )
    return snapshot
