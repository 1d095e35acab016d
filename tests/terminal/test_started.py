"""What is started under the screen, when that is told to end before it is there."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from pathlib import Path

import pytest
from support.tool import COMMAND, PATIENCE_S


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_it_is_not_left_behind(number: signal.Signals, tmp_path: Path) -> None:
    told = tmp_path / "pid"
    os.mkfifo(told)
    master, slave = pty.openpty()
    script = f"echo $$ > {told}; exec sleep 1000"
    process = subprocess.Popen(
        [COMMAND, "run", "--", "sh", "-c", script],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    try:
        program = Path("/proc", told.read_text().strip())
        process.send_signal(number)
        # 0: on a busy machine the screen may be there by then, and is closed.
        assert process.wait(PATIENCE_S) in (128 + number, 0)
        assert not program.exists()
    finally:
        process.kill()
        process.wait()
        os.close(master)
        os.close(slave)
