"""A stream of a stranger gives snapshots or counts, in bounded time and memory.

`make fuzz` takes longer, see test_damaged_files.py. `make fuzz-streams` looks for new inputs.
"""

from __future__ import annotations

import random
import struct
import time
from pathlib import Path

import pytest

from fuzz import hostile_streams as hostile
from fuzz.mutate import damaged
from fuzz.test_damaged_files import FIRST, MAX_S, ROUNDS

_ROUNDS, _FIRST = int(ROUNDS), int(FIRST or 0)
CORPUS = sorted(
    path
    for folder in ("streams", "recordings")
    for path in (Path(__file__).parent / "corpus" / folder).iterdir()
)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_known_inputs_do_no_harm(path: Path) -> None:
    hostile.examine(path.read_bytes())


def test_strange_parts_do_no_harm() -> None:
    longest_s = 0.0
    for seed in range(_FIRST, _FIRST + _ROUNDS):
        chance = random.Random(seed)
        small = bytes(chance.choice((0, 0, 0, 1, 2, 8, 255)) for _ in range(chance.randrange(400)))
        began = time.thread_time()
        hostile.examine(b"D" + small)
        longest_s = max(longest_s, time.thread_time() - began)
    assert longest_s < MAX_S


def test_strange_frames_do_no_harm() -> None:
    published = 0
    for seed in range(_FIRST, _FIRST + _ROUNDS // 10):
        published += len(hostile.examine(b"S" + seed.to_bytes(8, "little")).snapshots)
    assert published  # the sound snapshots come through


def test_strange_ring_records_do_no_harm() -> None:
    sound = (Path(__file__).parent / "corpus" / "streams" / "records").read_bytes()
    assert len(hostile.examine(sound).records) == 40
    kept = 0
    for seed in range(_FIRST, _FIRST + _ROUNDS // 10):
        kept += len(hostile.examine(sound[:1] + damaged(sound[1:], seed)).records)
    assert kept


def test_batches_that_unpack_to_much_are_left_out() -> None:
    """A few bytes announce a million records."""
    batch = struct.pack("<QHBHIHH", 10**9, 1, 0, 0, 0, 65535, 60_000) + bytes(60_000)
    assert hostile.examine(b"Q" + 3 * batch).records == []
