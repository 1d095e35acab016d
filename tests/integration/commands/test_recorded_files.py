"""A recording of a real process in place of the process, in the commands that scan."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from support import tool
from support.targets import StartTarget, Target

from locktop.collector.recording.recording_info import RecordingInfo
from locktop.collector.recording.recording_writer import RecordingWriter
from locktop.collector.sources.attach import attach

_SECOND = 1_000_000_000


def record(target: Target, path: Path) -> None:
    """Record a process with a scan before it goes on, and two scans afterwards.

    The times of the scans are a second apart, so that options can name them.
    """
    source = attach(target.pid)
    first = source.scan(resolve=True)
    began_ns = time.time_ns()
    writer = RecordingWriter(path, RecordingInfo.from_snapshot(first, "1"), began_ns)
    writer.add_snapshot(first, began_ns)
    target.go_on()
    target.truth()
    for number in (1, 2):
        writer.add_snapshot(source.scan(resolve=True), began_ns + number * _SECOND)
    writer.finish("test", began_ns + 2 * _SECOND)
    source.close()


@pytest.fixture
def ring(start_target: StartTarget, tmp_path: Path) -> Path:
    """A recording of three threads that deadlock on the way."""
    target = start_target("ring_of_three")
    target.expect("ready")
    record(target, tmp_path / "ring")
    return tmp_path / "ring"


def output(*arguments: str | Path) -> dict[str, Any]:
    done = tool.run(*map(str, arguments))
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_check_tells_when_the_deadlock_was_there(ring: Path) -> None:
    def status(*times: str) -> int:
        return tool.run("check", str(ring), "-q", *times).returncode

    assert [status(), status("--at", "+0s"), status("--at", "+1s")] == [1, 0, 1]
    assert [status("--from", "+0s"), status("--to", "+999ms")] == [1, 0]
    found = output("check", ring, "--json", "--from", "+0s")
    assert found["deadlocked"]
    assert found["finding"].endswith(": alice -> bob -> carol -> alice")


def test_the_span_has_the_waits_that_began_in_it(ring: Path) -> None:
    whole = output("snapshot", ring, "--from", "+0s")
    assert whole["source"] == "recording"
    for name in ("g_alpha_lock", "g_beta_lock", "g_gamma_lock"):
        lock = tool.lock_named(whole, name)
        assert lock["interval"]["wait_s"] == pytest.approx(lock["wait_s"])
        assert lock["wait_s"] > 0
    functions = {
        node["function"]
        for node in output("callers", ring, "--from", "+0s", "--format", "json")["nodes"]
    }
    assert {"alice_wants_second", "bob_wants_second", "carol_wants_second"} <= functions
