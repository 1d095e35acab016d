"""Threads that encode snapshots at one time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

#: Eight threads encode the first snapshot of a process at one time.
FIRST_SNAPSHOTS = """
import sys, threading
from unit.builders import scenarios
from locktop.collector.render.documents import snapshot_codec
sys.setswitchinterval(1e-6)
snapshot, barrier, done = scenarios.normal(), threading.Barrier(8), []
def first():
    barrier.wait()
    done.append(snapshot_codec.document(snapshot, None))
threads = [threading.Thread(target=first) for _ in range(8)]
for one in threads:
    one.start()
for one in threads:
    one.join()
sys.exit(0 if len(done) == 8 else 1)
"""


def test_threads_may_encode_their_first_snapshots_at_one_time() -> None:
    tests = Path(__file__).parents[3]
    command = [sys.executable, "-c", FIRST_SNAPSHOTS]
    runs = [
        subprocess.Popen(command, cwd=tests, env={**os.environ, "PYTHONPATH": str(tests)})
        for _ in range(12)
    ]
    assert [run.wait() for run in runs] == [0] * len(runs)
