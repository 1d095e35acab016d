"""What gdb says of a process: an unwinder that is not ours."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

# Frames that are on the stack: not those of inlined functions and of calls that became jumps.
_STACKS = """\
import gdb, json
found = {}
for thread in gdb.selected_inferior().threads():
    thread.switch()
    frame, addresses = gdb.newest_frame(), []
    while frame is not None:
        if frame.type() in (gdb.NORMAL_FRAME, gdb.SIGTRAMP_FRAME):
            addresses.append(frame.pc())
        frame = frame.older()
    found[thread.ptid[1]] = addresses
print("stacks:" + json.dumps(found))
"""
_PATIENCE_S = 120.0


def stacks(gdb: Path, pid: int, directory: Path) -> dict[int, list[int]]:
    """Return the addresses of each thread's frames, innermost first, by tid. The process stands
    still meanwhile."""
    script = directory / "stacks.py"
    script.write_text(_STACKS)
    options = ["-batch", "-nx", "-ex", "set backtrace past-main on", "-x", str(script)]
    done = subprocess.run(
        [gdb, "-p", str(pid), *options], capture_output=True, text=True, timeout=_PATIENCE_S
    )
    said = [line for line in done.stdout.splitlines() if line.startswith("stacks:")]
    assert said, done.stdout + done.stderr
    return {int(tid): frames for tid, frames in json.loads(said[0][len("stacks:") :]).items()}
