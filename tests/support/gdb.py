"""Stacks from gdb, whose unwinder is independent of locktop."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

# Only frames on the stack: no inlined functions, and no calls that became jumps.
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
print("said:" + json.dumps(found))
"""
_FUNCTIONS = """\
import gdb, json
found = {}
for thread in gdb.selected_inferior().threads():
    thread.switch()
    frame, names = gdb.newest_frame(), []
    while frame is not None and len(names) < 8:
        names.append(frame.name() or "")
        frame = frame.older()
    found[thread.ptid[1]] = names
print("said:" + json.dumps(found))
"""
_OWN_FUNCTIONS = """\
import gdb, json
found = {}
for thread in gdb.selected_inferior().threads():
    thread.switch()
    frame, names = gdb.newest_frame(), []
    while frame is not None:
        if not gdb.solib_name(frame.pc()):
            names.append(frame.name() or "")
        frame = frame.older()
    found[thread.ptid[1]] = names
print("said:" + json.dumps(found))
"""
_PATIENCE_S = 120.0


def stacks(gdb: Path, pid: int, directory: Path) -> dict[int, list[int]]:
    """Return the addresses of each thread's frames by tid, innermost first.

    The process is stopped meanwhile.
    """
    said: dict[str, list[int]] = _said(gdb, pid, directory, _STACKS)
    return {int(tid): frames for tid, frames in said.items()}


def functions(gdb: Path, pid: int, directory: Path) -> dict[int, list[str]]:
    """Return the names of each thread's innermost functions by tid; "" for a function without."""
    said: dict[str, list[str]] = _said(gdb, pid, directory, _FUNCTIONS)
    return {int(tid): names for tid, names in said.items()}


def own_functions(gdb: Path, pid: int, directory: Path) -> dict[int, list[str]]:
    """Return the functions of the program itself in each thread's stack by tid, innermost first.

    Inlined ones count, those of libraries do not.
    """
    said: dict[str, list[str]] = _said(gdb, pid, directory, _OWN_FUNCTIONS)
    return {int(tid): names for tid, names in said.items()}


def _said(gdb: Path, pid: int, directory: Path, code: str) -> Any:
    script = directory / "gdb.py"
    script.write_text(code)
    options = ["-batch", "-nx", "-ex", "set backtrace past-main on", "-x", str(script)]
    done = subprocess.run(
        [gdb, "-p", str(pid), *options], capture_output=True, text=True, timeout=_PATIENCE_S
    )
    said = [line for line in done.stdout.splitlines() if line.startswith("said:")]
    assert said, done.stdout + done.stderr
    return json.loads(said[0].removeprefix("said:"))
