"""The command `locktop`, in a process of its own, as users run it.

A new process imports locktop first, which takes most of its CPU time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from support.tool_client import ToolClient

COMMAND = str(Path(sys.executable).with_name("locktop"))

#: Far longer than any command takes; ends a command that hangs. A snapshot alone may wait for
#: names for 30 s.
PATIENCE_S = 300.0

_client = ToolClient()


def start(
    *arguments: str | int,
    environment: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
) -> subprocess.Popen[str]:
    """Start ``locktop ARGUMENTS`` with its output in pipes."""
    return subprocess.Popen(
        [*prefix, COMMAND, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
    )


def run(
    *arguments: str | int, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``locktop ARGUMENTS`` to its end, in a fork of a process that has imported all of it.

    The runs of these tests share what they read of libraries, such as libc. ``environment`` may say
    LOCKTOP_CACHE=none, where it matters how soon names come.
    """
    names = {"LOCKTOP_CACHE": _names().name} if os.environ.get("LOCKTOP_CACHE") == "none" else {}
    variables = {**os.environ, **names, **(environment or {})}
    return _client.run([*map(str, arguments)], variables, PATIENCE_S)


@cache
def _names() -> tempfile.TemporaryDirectory[str]:
    """The directory of what runs have read of libraries; it goes with the tests."""
    return tempfile.TemporaryDirectory(prefix="locktop-names-")


def run_alone(
    *arguments: str | int,
    environment: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    """Run ``locktop ARGUMENTS`` to its end in a new process, where the start is what is tested."""
    process = start(*arguments, environment=environment, prefix=prefix)
    try:
        output, errors = process.communicate(timeout=PATIENCE_S)
    except BaseException:
        process.kill()
        process.communicate()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def snapshot(pid: int, *options: str | int) -> dict[str, Any]:
    """Return ``locktop snapshot -p PID --format json``."""
    done = run("snapshot", "-p", pid, "--format", "json", *options)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def lock_named(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the only lock with that name."""
    locks: list[dict[str, Any]] = [lock for lock in document["locks"] if lock["name"] == name]
    assert len(locks) == 1, [lock["name"] for lock in document["locks"]]
    return locks[0]


def thread_of(document: Mapping[str, Any], tid: int) -> dict[str, Any]:
    """Return the only thread with that tid."""
    threads: list[dict[str, Any]] = [
        thread for thread in document["threads"] if thread["tid"] == tid
    ]
    assert len(threads) == 1, [thread["tid"] for thread in document["threads"]]
    return threads[0]


def functions(document: Mapping[str, Any], stack: int) -> list[str]:
    """Return the function names of a stack, innermost first."""
    return [frame["function"] for frame in document["stacks"][str(stack)]]


def scan_until(pid: int, reached: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
    """Take snapshots until ``reached`` is true of one, and return that one.

    The kernel decides when a state is reached, so no fixed pause would do.
    """
    deadline = time.monotonic() + PATIENCE_S
    while True:
        document = snapshot(pid)
        if reached(document):
            return document
        assert time.monotonic() < deadline, f"never seen: {what}"
