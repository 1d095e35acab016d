"""Packed frames take the memory of their bytes."""

from __future__ import annotations

import tracemalloc

import pytest

from locktop.collector.recording import frame_format


@pytest.mark.parametrize("before", [None, bytes(1 << 20)], ids=["key", "change"])
def test_a_packed_payload_takes_the_memory_of_its_length(before: bytes | None) -> None:
    """A memory of 64 MB counts lengths, so each part must take no more than its length."""
    payload = bytes(1 << 20)
    frame_format.packed(payload, before)
    tracemalloc.start()
    try:
        kept = [frame_format.packed(payload, before) for _ in range(8)]
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(map(len, kept)) < 8 * 2_000
    assert taken < 100_000
    assert frame_format.unpack(kept[0], len(payload), before) == payload
