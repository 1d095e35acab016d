"""Samples of what runs inside locks, for the commands that show them."""

from __future__ import annotations

import argparse
import time
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

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
    parser.add_argument(
        "--hz",
        type=frequency,
        metavar="N",
        help="with --inside: samples in a second of a thread (default 99)",
    )


def check_samples(arguments: argparse.Namespace, options: Mapping[str, str]) -> None:
    """Refuse options that only samples of a process have.

    Args:
        arguments: of the command line, with ``inside``.
        options: their names in ``arguments``, with what the user types.

    Raises:
        LocktopError: one of them is given without samples.
    """
    from locktop.collector.errors import LocktopError

    given = [typed for name, typed in options.items() if getattr(arguments, name) is not None]
    if given and not (arguments.inside and arguments.pid is not None):
        raise LocktopError(f"{given[0]} needs --inside and -p PID")


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
