"""The indented JSON of a large document, compared with that of msgspec."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from unit.builders.records import lock, snapshot

from locktop.collector.export import indented_json, snapshot_codec
from locktop.collector.model import Blame, Snapshot

MANY = indented_json.MIN_ELEMENTS


def crowd(*counts: int) -> Snapshot:
    """Return a snapshot of locks with so many elements of blame each."""
    locks = []
    for number, count in enumerate(counts, 1):
        blame = tuple(
            Blame(tid=tid, site=0x401000 + tid % 3, wait_s=1e-7 * 3**tid if tid < 9 else 1 / tid)
            for tid in range(count)
        )
        locks.append(replace(lock(number, f"blame {number}"), blame=blame, wait_s=1e6))
    return snapshot((), tuple(locks))


def by_msgspec(document: dict[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


@pytest.mark.parametrize("counts", [(MANY,), (MANY - 1, MANY, 0, MANY + 1), (3, 0), ()])
@pytest.mark.parametrize("before", [None, (MANY, 1)])
def test_the_text_is_that_of_msgspec(
    counts: tuple[int, ...], before: tuple[int, ...] | None
) -> None:
    earlier = crowd(*before) if before is not None else None
    text = snapshot_codec.encode(crowd(*counts), earlier)
    assert text == by_msgspec(snapshot_codec.document(crowd(*counts), earlier))
    assert [len(one["blame"]) for one in json.loads(text)["locks"]] == list(counts)
