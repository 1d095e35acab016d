"""Runs another program on the terminal of the screen, which is suspended meanwhile."""

from __future__ import annotations

import shlex
import signal
import subprocess
from collections.abc import Sequence

from locktop.collector.errors import reason_of


def run(command: Sequence[str]) -> str:
    """Run ``command`` to its end; return what went wrong in one line, or "".

    The event loop stands still meanwhile, so that nothing paints over the program. The scans go on
    in their thread.
    """
    # Ctrl+C and Ctrl+\ are for the program. A handler, unlike SIG_IGN, is not passed on to it.
    keys = (signal.SIGINT, signal.SIGQUIT)
    before = {number: signal.signal(number, lambda *_: None) for number in keys}
    try:
        status = subprocess.run(command, check=False).returncode
    except OSError as error:
        return f"{command[0]} could not be started: {reason_of(error)}"
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return f"{shlex.join(command)} ended with status {status}" if status else ""
