"""A recording of a real process, read by locktop and by a reader that knows only the document."""

from __future__ import annotations

import ast
import time
from pathlib import Path

import pytest
from support import second_reader
from support.targets import StartTarget

from locktop.collector.model import Notable, NotableKind
from locktop.collector.recording.recording import Recording
from locktop.collector.recording.recording_info import RecordingInfo
from locktop.collector.recording.recording_writer import RecordingWriter
from locktop.collector.sources.attach import attach


@pytest.fixture
def path(start_target: StartTarget, tmp_path: Path) -> Path:
    """A recording of a program that waits in several ways, with over 64 frames."""
    target = start_target("waits_down_call_tree")
    target.truth()
    source = attach(target.pid)
    drain = source.drain()
    assert drain is not None
    first = source.scan(resolve=True)
    writer = RecordingWriter(
        tmp_path / "r", RecordingInfo.from_snapshot(first, "1"), time.time_ns()
    )
    for number in range(70):
        snapshot = source.scan()
        now_ns = time.time_ns()
        slots = drain.take(0.0).slots
        if slots.records:
            writer.add_slots(slots)
        writer.add_snapshot(snapshot, now_ns)
        if number == 7:
            writer.add_notables([Notable(now_ns, NotableKind.MARK, "deploy")], now_ns)
    writer.finish("the test is over", time.time_ns())
    drain.close()
    source.close()
    return tmp_path / "r"


def test_the_second_reader_imports_nothing_of_locktop() -> None:
    tree = ast.parse(Path(second_reader.__file__).read_text())
    imported = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
        )
    }
    assert not {name for name in imported if name and name.startswith(("locktop", "support"))}


def test_both_readers_find_the_same(path: Path) -> None:
    found, recording = second_reader.read(path), Recording(path)
    assert (found.reason, found.is_indexed) == ("the test is over", True)
    assert found.info["pid"] == recording.info.pid
    assert [time_ns for time_ns, _ in found.snapshots] == list(recording.times_ns())
    assert len(found.snapshots) == 70
    for (time_ns, theirs), blame in zip(found.snapshots, found.blame, strict=True):
        ours = recording.snapshot_at(time_ns)
        assert theirs["taken_at"] == ours.taken_at
        for name in ("id", "name", "contended", "acquisitions", "wait_s", "hold_s"):
            assert [lock[name] for lock in theirs["locks"]] == [
                getattr(lock, name) for lock in ours.locks
            ]
        for lock in ours.locks:
            rows = [(one.tid, one.site, one.through, one.wait_s) for one in lock.blame]
            assert blame.get(lock.id, []) == rows
        assert [thread["cpu_s"] for thread in theirs["threads"]] == [
            thread.cpu_s for thread in ours.threads
        ]
        assert theirs["stacks"].keys() == ours.stacks.keys()
    ours_records = recording.records(0, 1 << 62)
    assert len(found.records) == len(ours_records) > 0
    assert sorted((one.tid, one.lock, one.stack, one.began_ns) for one in found.records) == sorted(
        (one.tid, one.lock, one.stack, one.began_ns) for one in ours_records
    )
    waited_s = sum(lock["wait_s"] for lock in found.snapshots[-1][1]["locks"])
    assert waited_s == pytest.approx(
        sum(lock.wait_s for lock in recording.snapshot_at(recording.times_ns()[-1]).locks)
    )
    assert found.notables == [
        {"time_ns": one.time_ns, "kind": "mark", "text": "deploy", "tid": 0, "lock": 0}
        for one in recording.notables()
    ]
    recording.close()
