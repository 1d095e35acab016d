"""Code of a just-in-time compiler has the names that the compiler writes for perf."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.targets import PATIENCE_S, StartTarget, Target

from locktop.collector.model import Frame, Snapshot
from locktop.collector.sources.attach import attach


@pytest.fixture
def written() -> Iterator[list[Target]]:
    """Collects targets, and removes their maps after the test."""
    targets: list[Target] = []
    yield targets
    for target in targets:
        Path(f"/tmp/perf-{target.pid}.map").unlink(missing_ok=True)


def jitted(snapshot: Snapshot) -> Frame | None:
    """Return the frame of compiled code in the stack of a waiting thread."""
    for thread in snapshot.threads:
        if thread.waiting_for is not None and thread.waiting_for.stack:
            inner, *outer = snapshot.stacks[thread.waiting_for.stack]
            assert inner.function == "take"
            return outer[0]
    return None


def scan_until_waiting(target: Target) -> Frame:
    deadline = time.monotonic() + PATIENCE_S
    with closing(attach(target.pid)) as source:
        while (frame := jitted(source.scan(resolve=True))) is None:
            assert time.monotonic() < deadline
    return frame


def test_a_frame_has_the_last_name_of_the_perf_map(
    start_target: StartTarget, written: list[Target]
) -> None:
    target = start_target("jit_code_waits", "map")
    written.append(target)
    target.expect("ready")
    frame = scan_until_waiting(target)
    assert frame.function == "Made::at <run> time [?[31m", "the last name, with a safe escape"
    assert (frame.module, frame.file, frame.line) == ("jit", None, None)


def test_a_jitdump_has_lines_and_follows_code_that_moved(
    start_target: StartTarget, written: list[Target], tmp_path: Path
) -> None:
    target = start_target("jit_code_waits", "dump", str(tmp_path))
    written.append(target)
    target.expect("ready")
    target.go_on()  # the target also writes a map, which has no lines
    target.expect("written")
    frame = scan_until_waiting(target)
    assert (frame.function, frame.file, frame.line) == ("Made.run", "made.lang", 42)


def test_a_frame_gets_its_name_from_a_map_that_is_written_later(
    start_target: StartTarget, written: list[Target]
) -> None:
    target = start_target("jit_code_waits", "later")
    written.append(target)
    target.expect("ready")
    deadline = time.monotonic() + PATIENCE_S
    with closing(attach(target.pid)) as source:
        while (frame := jitted(source.scan(resolve=True))) is None:
            assert time.monotonic() < deadline
        assert frame.function == ""
        target.go_on()
        target.expect("written")
        while not frame or not frame.function:
            assert time.monotonic() < deadline, "the name does not appear"
            time.sleep(0.02)  # leaves the CPU to the resolver
            frame = jitted(source.scan())
        assert frame.function.startswith("Made::at")
