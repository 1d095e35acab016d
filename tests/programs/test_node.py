"""Node.js: its workers wait for each other through mutexes and conditions of libc."""

from __future__ import annotations

import pytest
from support import watched
from support.targets import SOURCES
from support.watched import Need

pytestmark = pytest.mark.big

WORKERS, ROUNDS = 4, 20000


@pytest.mark.parametrize("level", ["contended", "all"])
def test_workers_of_node(level: str, need: Need) -> None:
    command = [str(need("node", "nodejs")), str(SOURCES / "workers.js")]
    bare, seen = watched.run(command), watched.run(command, level)
    wanted = f"{WORKERS * ROUNDS}\n"
    assert (bare.status, bare.output) == (seen.status, seen.output) == (0, wanted)
    assert watched.threads_seen(seen) > WORKERS
    assert watched.total(seen.last, "acquisitions", "mutex") > WORKERS * ROUNDS
    assert watched.total(seen.last, "wait_s", "cond") > 0, "Atomics.wait"
