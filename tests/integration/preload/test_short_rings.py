"""Rings for which there is no room: the next smaller ones are taken, with a note."""

from __future__ import annotations

import pytest
from support.eventually import until
from support.targets import StartTarget, Target

from locktop.collector import native
from locktop.collector.linux.target import find_process
from locktop.collector.shm import layout
from locktop.collector.shm.segment import GrowingArray
from locktop.collector.sources import discover
from locktop.collector.sources.attach import attach

RECORDS = 65536
THREADS, CROWD = 8, "8:s500,L40,s100,U"


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


@pytest.mark.parametrize(("memory", "is_enough"), [("12M", False), ("256M", True)])
def test_smaller_rings_are_taken_with_a_note(
    start_target: StartTarget, memory: str, is_enough: bool
) -> None:
    environment = {"LOCKTOP_RING": str(RECORDS), "LOCKTOP_MEMORY": memory, "LOCKTOP_LEVEL": "all"}
    target = start_target("lock_rounds", CROWD, flags=("-lm",), environment=environment)
    target.expect("ready")
    until(lambda: len(ring_sizes(target)) >= THREADS, "all threads have a ring")
    sizes = ring_sizes(target)
    found = [note for note in notes(target) if "fewer records than LOCKTOP_RING" in note]
    assert sizes[-1] <= RECORDS
    assert bool(found) == (not is_enough)
    if is_enough:
        assert set(sizes) == {RECORDS}
    else:
        assert any(16 < size < RECORDS for size in sizes)
