"""SIGHUP for a process whose terminal is lost, if the kernel does not send the signal."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def hang_up_reported() -> Iterator[None]:
    """Send SIGHUP to this process when a terminal among its standard streams hangs up.

    The kernel does so for the controlling terminal. A process that a container, ``setsid`` or
    ``ssh`` without a login started may have its streams on another terminal. A process that ignores
    SIGHUP, as with ``nohup``, is left alone.
    """
    others = [number for number in (0, 1, 2) if _is_other_terminal(number)]
    if not others or signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        yield
        return
    end = os.eventfd(0)
    watching = threading.Thread(target=_watch, args=(others, end), name="hang-up", daemon=True)
    watching.start()
    try:
        yield
    finally:
        os.eventfd_write(end, 1)
        watching.join()
        os.close(end)


def _is_other_terminal(number: int) -> bool:
    """Return whether a descriptor is a terminal, but not the one that controls this process."""
    if not os.isatty(number):
        return False
    try:
        os.tcgetpgrp(number)  # fails for any other terminal
    except OSError:
        return True
    return False


def _watch(numbers: list[int], end: int) -> None:
    poll = select.poll()
    poll.register(end, select.POLLIN)
    for number in numbers:
        poll.register(number, 0)  # for a hang-up alone
    while True:
        for number, event in poll.poll():
            if number == end:
                return
            poll.unregister(number)
            if event & select.POLLHUP:
                os.kill(os.getpid(), signal.SIGHUP)
                return
