"""The samples inside locks in the document of a snapshot."""

from __future__ import annotations

import json

from msgspec.structs import replace
from unit.render.documents.test_snapshot_codec import INSIDE, full

from locktop.collector.render.documents.snapshot_codec import document, parse


def test_a_section_has_a_key_in_the_locks_that_it_knows() -> None:
    made = full()
    whole = document(made)
    assert "locks" not in whole["inside"]
    first, *others = whole["locks"]
    assert (first["inside"]["samples"], first["inside"]["stacks"][0]["site"]) == (5, "0x401000")
    assert [lock["inside"] for lock in others] == [None] * len(others)
    assert parse(json.dumps(whole).encode(), "x").sections["inside"].locks == {first["id"]: INSIDE}
    alone = document(replace(made, sections={}))
    assert {lock["inside"] for lock in alone["locks"]} == {None}


def test_a_key_of_a_lock_without_its_section_is_left_out() -> None:
    whole = document(full()) | {"inside": None}
    assert "inside" not in parse(json.dumps(whole).encode(), "x").sections
