"""A thread with the id of an ended thread has none of the figures of that thread.

From Linux 6.14 on, each pid namespace has its own kernel.pid_max, so ids are soon used again. The
tool runs inside of the namespace with the same ids, or outside with other ids.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from support.targets import PATIENCE_S, Compiler, Target
from support.watched import Need

from locktop.collector.model import Snapshot
from locktop.collector.sources.attach import attach

#: The largest pid: the kernel keeps the first 300 (RESERVED_PIDS), so only few are left.
PID_MAX = 312
OWN_LIMIT = (6, 14)
#: The time for which the first thread waits or holds: far longer than the time between samples.
LONG_S = 0.9
#: The longest time between two samples.
APART_S = 0.8

Start = Callable[..., Target]


def kernel() -> tuple[int, ...]:
    return tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])


@pytest.fixture
def few_ids(need: Need) -> Iterator[Start]:
    """Starts a command in a pid namespace with few ids."""
    if os.geteuid() != 0 or kernel() < OWN_LIMIT:
        pytest.skip("only root may make a namespace, and Linux 6.14 gives it a limit of its own")
    own = [str(need("unshare", "util-linux")), "-pf", "--kill-child", "--mount-proc"]
    if subprocess.run([*own, "true"], capture_output=True).returncode != 0:
        pytest.skip("no namespace may be made here")
    with ExitStack() as stack:

        def start(*command: str) -> Target:
            limited = f'echo {PID_MAX} > /proc/sys/kernel/pid_max && exec "$@"'
            tests = str(Path(__file__).parents[2])
            shell = [*own, "sh", "-c", limited, "sh", *command]
            return stack.enter_context(Target(shell, {"PYTHONPATH": tests}))

        yield start


def scan_twice(target: Target, pid: int, way: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Scan until the first thread has waited or held for LONG_S seconds; then scan the second.

    Return the figures and the age of both threads.
    """
    with closing(attach(pid)) as source:
        found = []
        for name in ("first", "second"):
            truth = target.truth()
            source.follow(truth["tid"])
            enough_s, deadline = LONG_S if name == "first" else 0.0, time.monotonic() + PATIENCE_S
            while True:
                measured = figures(source.scan(), truth["tid"])
                age_s = time.monotonic() - truth["begun"]
                is_there = measured["activity"] or (way, name) == ("keeps", "second")
                is_long = min(measured["duration_s"], measured["sum_s"]) >= enough_s
                if measured["name"] == name and is_there and is_long:
                    break
                assert time.monotonic() < deadline, measured
            found.append({**measured, "tid": truth["tid"], "age_s": age_s})
            target.go_on()
        target.expect("ok")
    first, second = found
    return first, second


def figures(seen: Snapshot, tid: int) -> dict[str, Any]:
    """Return what a snapshot shows of a thread."""
    thread = next((one for one in seen.threads if one.tid == tid), None)
    if thread is None:
        return {"name": "", "activity": None, "duration_s": 0.0, "sum_s": 0.0}
    wait = thread.waiting_for
    now = next((lock.holder_activity for lock in seen.locks if lock.holder_activity), None)
    if now is not None and now.tid != tid:
        now = None
    blamed = sum(one.wait_s for lock in seen.locks for one in lock.blame if one.tid == tid)
    counters = thread.counters.duration_s if thread.counters is not None else 0.0
    return {
        "name": thread.name,
        "activity": "waits" if wait else now and str(now.doing),
        "duration_s": wait.duration_s if wait else now.duration_s if now else 0.0,
        "holds": any(tid in lock.holders for lock in seen.locks),
        "sum_s": sum(thread.wait_s.values()) if wait else blamed,
        "counted_s": counters,
    }


def check(first: dict[str, Any], second: dict[str, Any], way: str) -> None:
    """Check that no figure of the second thread is from the time before that thread."""
    assert first["tid"] == second["tid"]
    assert first["activity"] == ("waits" if way == "waits" else "blocked")
    assert second["activity"] == (None if way == "keeps" else first["activity"])
    assert (first["holds"], second["holds"]) == (way != "waits", way == "holds")
    assert first["duration_s"] >= LONG_S
    assert second["duration_s"] <= second["age_s"]
    assert second["counted_s"] <= second["age_s"]
    # A wait counts from the middle between its first sample and the sample before.
    assert first["sum_s"] >= LONG_S
    assert second["sum_s"] <= (0.0 if way == "keeps" else second["age_s"] + APART_S / 2)


@pytest.mark.parametrize("way", ["waits", "holds", "keeps"])
def test_a_tool_in_the_same_namespace_distinguishes_the_threads(
    way: str, few_ids: Start, compiler: Compiler
) -> None:
    program = str(compiler.program("thread_id_reused"))
    with few_ids(sys.executable, __file__, program, way) as inside:
        first, second = json.loads(inside.line())
    check(first, second, way)


@pytest.mark.parametrize("way", ["waits", "holds", "keeps"])
def test_a_tool_in_another_namespace_distinguishes_the_threads(
    way: str, few_ids: Start, compiler: Compiler
) -> None:
    with few_ids(str(compiler.program("thread_id_reused")), way) as target:
        children = Path(f"/proc/{target.pid}/task/{target.pid}/children")
        deadline = time.monotonic() + PATIENCE_S
        while (
            not (found := children.read_text().split())
            or comm(int(found[0])) != "thread_id_reused"[:15]
        ):
            assert time.monotonic() < deadline
        check(*scan_twice(target, int(found[0]), way), way)


def comm(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


if __name__ == "__main__":
    with Target(sys.argv[1:]) as started:
        print(json.dumps(scan_twice(started, started.pid, sys.argv[-1])), flush=True)
