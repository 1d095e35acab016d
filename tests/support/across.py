"""Runs the scenarios of tests/targets/across: processes that wait for each other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from support.targets import source_of


@contextmanager
def running(program: str, name: str, *before: str) -> Iterator[int]:
    """Run a scenario; yield the pid that it says. All its processes end at the end.

    Args:
        program: the target.
        name: the scenario.
        before: a command that runs the scenario.
    """
    arguments = [*before, sys.executable, str(source_of(program)), name]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
        process.wait()
