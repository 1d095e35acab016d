"""Rings for which there is no room: smaller ones leave room for others, and a note says so."""

from __future__ import annotations

import pytest
from support import tool
from support.targets import StartTarget, Target

from locktop.collector import native
from locktop.collector.linux.target import find_process
from locktop.collector.shm import layout
from locktop.collector.shm.segment import GrowingArray
from locktop.collector.sources import discover
from locktop.collector.sources.attach import attach

RECORDS = 65536
THREADS = 8


def ring_sizes(target: Target) -> list[int]:
    """The records of each ring that was made, the smallest first."""
    memory = discover.open_memory(find_process(target.pid))
    threads = GrowingArray(memory, layout.THREADS_AT, layout.THREAD.size)
    threads.refresh()
    at = native.offset_of("struct lt_thread", "ring_capacity")
    sizes = [int.from_bytes(memory.read(block + at, 4), "little") for block in threads.offsets()]
    memory.close()
    return sorted(size for size in sizes if size)


def notes(target: Target) -> tuple[str, ...]:
    source = attach(target.pid)
    try:
        return source.scan().notes
    finally:
        source.close()


@pytest.mark.parametrize(("memory", "is_enough"), [("16M", False), ("256M", True)])
def test_smaller_rings_are_taken_with_a_note(
    start_target: StartTarget, memory: str, is_enough: bool
) -> None:
    environment = {"LOCKTOP_RING": str(RECORDS), "LOCKTOP_MEMORY": memory, "LOCKTOP_LEVEL": "all"}
    target = start_target("rings_before_locks", str(THREADS), "1", "1", environment=environment)
    target.expect("ready")
    sizes = ring_sizes(target)
    assert len(sizes) == THREADS + 1
    found = [note for note in notes(target) if "fewer records than LOCKTOP_RING" in note]
    assert sizes[-1] <= RECORDS
    assert bool(found) == (not is_enough)
    if is_enough:
        assert set(sizes) == {RECORDS}
    else:
        assert any(16 < size < RECORDS for size in sizes)


def test_smaller_rings_leave_room_for_locks_and_threads(start_target: StartTarget) -> None:
    environment = {"LOCKTOP_RING": str(RECORDS), "LOCKTOP_MEMORY": "16M", "LOCKTOP_LEVEL": "all"}
    writers, takers, locks = 12, 10, 3000
    numbers = map(str, (writers, takers, locks))
    target = start_target("rings_before_locks", *numbers, environment=environment)
    target.expect("ready")
    assert any(16 < size < RECORDS for size in ring_sizes(target))
    document = tool.snapshot(target.pid)
    listed = [lock for lock in document["locks"] if lock["acquisitions"]]
    assert len(listed) == locks + 1
    assert len([one for one in document["threads"] if one["alive"]]) == 1 + writers + takers
    assert not [note for note in document["notes"] if "unwatched" in note]
