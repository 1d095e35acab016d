"""Outputs that nobody reads any more: a terminal that hung up, a closed pipe."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from typing import IO, Any

from locktop.tui.exit_status import EXIT_WRONG


def discard(stream: IO[Any]) -> None:
    """Send what a stream still holds, and all that follows, to /dev/null.

    Without that Python's flush at the end fails, which ends the process with status 120.
    """
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def discard_if_lost(stream: IO[Any]) -> None:
    """Discard what a stream still holds if it cannot be written."""
    try:
        stream.flush()
    except (OSError, ValueError):
        discard(stream)


def is_lost_terminal(error: OSError, stream: IO[Any]) -> bool:
    """Return whether a write to a stream failed because its terminal has hung up."""
    if error.errno != errno.EIO or error.filename is not None:
        return False
    try:
        return stat.S_ISCHR(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def complain(message: str) -> int:
    """Print a message on the standard error; return the exit status for wrong use."""
    try:
        print(f"locktop: {message}", file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)
    return EXIT_WRONG
