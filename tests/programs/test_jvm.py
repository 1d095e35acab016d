"""A JVM: its threads park and block on mutexes and conditions of libc."""

from __future__ import annotations

import pytest
from support import watched
from support.targets import SOURCES
from support.watched import Need

pytestmark = pytest.mark.big

THREADS, ROUNDS = 6, 30000


def test_threads_of_java(need: Need) -> None:
    command = [str(need("java", "default-jdk-headless")), str(SOURCES / "Parallel.java")]
    bare, seen = watched.run(command), watched.run(command, "contended")
    each = sum(range(ROUNDS))
    wanted = f"{THREADS * each} {sum(range(THREADS)) * ROUNDS} {each}\n"
    assert (bare.status, bare.output) == (seen.status, seen.output) == (0, wanted)
    assert watched.threads_seen(seen) > THREADS
    names = {thread["name"] for found in seen.looks for thread in found["threads"]}
    assert any(name.startswith("GC Thread") for name in names), names
    assert watched.total(seen.last, "acquisitions", "mutex") > 0
    assert watched.total(seen.last, "wait_s", "cond") > 0, "parked threads"
