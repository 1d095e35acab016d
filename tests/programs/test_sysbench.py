"""sysbench: threads fight for a few mutexes, with a fixed number of events."""

from __future__ import annotations

import re

import pytest
from support import tool, watched
from support.watched import Need

THREADS, MUTEXES, LOCKS = 4, 2, 1_000_000
#: A yield takes long beside twenty busy processes.
EVENTS, YIELDS = 500, 5


def events(result: watched.Result) -> int:
    found = re.search(r"total number of events:\s+(\d+)", result.output)
    assert found, result.output
    return int(found[1])


@pytest.mark.parametrize("level", ["contended", "all"])
def test_sysbench_mutex(level: str, need: Need) -> None:
    command = [str(need("sysbench")), "mutex", f"--threads={THREADS}", f"--mutex-num={MUTEXES}"]
    command += ["--mutex-loops=100", f"--mutex-locks={LOCKS}", "run"]
    without, seen = watched.run(command), watched.run(command, level)
    assert (seen.status, events(seen)) == (without.status, events(without)) == (0, THREADS)
    hot = [lock for lock in seen.last["locks"] if lock["kind"] == "mutex" and lock["contended"]]
    assert sum(lock["acquisitions"] for lock in hot) >= THREADS * LOCKS
    assert watched.threads_seen(seen) == THREADS + 1
    stacks = [tool.functions(seen.last, one["stack"]) for one in hot[0]["wait_stacks"]]
    assert all(len(stack) >= 2 for stack in stacks), "unwound without frame pointers"


def test_sysbench_threads(need: Need) -> None:
    command = [
        str(need("sysbench")),
        "threads",
        "--threads=8",
        "--thread-locks=2",
        f"--thread-yields={YIELDS}",
    ]
    command += [f"--events={EVENTS}", "--time=0", "run"]
    without, seen = watched.run(command), watched.run(command, "contended")
    assert (seen.status, events(seen)) == (without.status, events(without)) == (0, EVENTS)
    # Each event takes and releases one of the locks as often as it yields.
    assert watched.total(seen.last, "acquisitions", "mutex") >= EVENTS * YIELDS
    assert watched.total(seen.last, "contended", "mutex") > 0
