"""Ends a child with its parent, in any state of the child."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1  # sys/prctl.h


def end_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends."""
    parent = int(os.environ["TEST_PARENT"])
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # the parent ended before the call
        os._exit(1)
