"""Snapshots that an earlier version wrote are read with the same values.

old_snapshots/ has three files of one program: counted with a deadlock and an interval, sampled with
an interval, and msgpack. Beside each file lies what the reader and writer of that version made of
the file.
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from locktop.collector.export.snapshot_codec import document, parse

_OLD = Path(__file__).parent / "old_snapshots"
#: The keys that later versions added, with the values that an old snapshot gets.
_ADDED = {
    "lock_orders_left_out": False,
    "lock_order_search_cut": False,
}
_ADDED_TO_CYCLES = {"ways": [], "ways_left_out": False}
_NAMES = ("preload_deadlock_interval.json", "sampled_interval.json", "preload.msgpack")


@pytest.mark.parametrize("name", _NAMES)
def test_an_old_snapshot_has_the_values_that_it_had(name: str) -> None:
    expected = json.loads((_OLD / f"{name}.expected.json").read_bytes())
    expected["lock_order"] = [cycle | _ADDED_TO_CYCLES for cycle in expected["lock_order"]]
    assert document(parse((_OLD / name).read_bytes(), name)) == expected | _ADDED


@pytest.mark.parametrize("name", _NAMES)
def test_the_figures_of_the_file_itself_are_read(name: str) -> None:
    data = (_OLD / name).read_bytes()
    saved = json.loads(data) if name.endswith("json") else msgspec.msgpack.decode(data)
    read = parse(data, name)
    assert [lock.wait_s for lock in read.locks] == [lock["wait_s"] for lock in saved["locks"]]
    assert {thread.tid: thread.name for thread in read.threads} == {
        thread["tid"]: thread["name"] for thread in saved["threads"]
    }
    assert len(read.deadlocks) == len(saved["deadlocks"])
    assert {str(number): len(frames) for number, frames in read.stacks.items()} == {
        number: len(frames) for number, frames in saved["stacks"].items()
    }
