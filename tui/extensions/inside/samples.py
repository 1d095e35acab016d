"""Takes samples of what runs inside locks, for `callers` and `snapshot`. See SnapshotSource."""

from __future__ import annotations

import argparse
import time
from collections.abc import Collection
from typing import TYPE_CHECKING

from locktop.collector.errors import LocktopError
from locktop.tui.commands.command_parser import FURTHER, group

if TYPE_CHECKING:
    from locktop.collector.model import Snapshot
    from locktop.collector.sources.attach import Source

#: Seconds between two scans: each chooses the threads to sample.
_SCAN_S = 0.5
_MIN_HZ, _MAX_HZ = 1.0, 2000.0
_HZ = 99.0


def frequency(text: str) -> float:
    """Samples in a second of a thread."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not _MIN_HZ <= number <= _MAX_HZ:
        raise argparse.ArgumentTypeError(f"{text!r} is not a frequency from 1 to 2000")
    return number


def add_frequency(parser: argparse.ArgumentParser) -> None:
    """Declare --hz."""
    group(parser, FURTHER).add_argument(
        "--hz",
        type=frequency,
        metavar="N",
        help="with --inside: samples in a second of a thread (default 99)",
    )


def profiled(
    source: Source, duration_s: float, hz: float | None, locks: Collection[int] | None = None
) -> Snapshot:
    """Return a snapshot with all names and with the samples of so many seconds.

    Args:
        source: a process; the caller closes it.
        duration_s: seconds.
        hz: samples in a second of a thread; None: 99.
        locks: ids of the locks that matter; None: all.

    Raises:
        LocktopError: the process runs without the library.
    """
    source.start_part("inside", locks, hz or _HZ)
    end = time.monotonic() + duration_s
    while not source.scan().ended and (left_s := end - time.monotonic()) > 0:
        time.sleep(min(left_s, _SCAN_S))
    return source.scan(resolve=True)


def check(arguments: argparse.Namespace) -> None:
    """Raise LocktopError if other options do not go with --inside."""
    if not arguments.duration:
        raise LocktopError("--inside needs -p PID and -d SECONDS")


def from_process(source: Source, arguments: argparse.Namespace) -> Snapshot:
    """Return a scan of a process with the samples of the time of -d."""
    return profiled(source, arguments.duration, arguments.hz)


def from_recording(snapshot: Snapshot, arguments: argparse.Namespace) -> Snapshot:
    """Return the snapshot: check() refuses a recording."""
    return snapshot
