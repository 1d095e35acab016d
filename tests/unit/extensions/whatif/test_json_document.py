"""Predictions as JSON."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace
from unit.builders.predicted import FOUND, LOCK, SNAPSHOT

from locktop.collector.extensions.whatif import json_document
from locktop.collector.extensions.whatif.model import (
    Change,
    ChangeKind,
    RefusedChange,
    WhatIfRefusal,
)
from locktop.collector.render.documents import snapshot_codec

THREADS = Change(ChangeKind.THREADS, 8.0, group="pool")
PARTLY = replace(
    FOUND,
    predictions=FOUND.predictions[2:],
    refused=(
        RefusedChange(change=THREADS, reason=WhatIfRefusal.DEPENDENT),
        RefusedChange(change=FOUND.predictions[0].change, reason=WhatIfRefusal.STOPPED),
    ),
)


def test_refused_changes_are_listed_with_their_reasons() -> None:
    document = json_document.document(PARTLY, SNAPSHOT)
    assert (document["refusal"], document["why"]) == (None, None)
    assert len(document["predictions"]) == 1
    threads, split = document["refused"]
    sentence = threads.pop("sentence")
    assert sentence.startswith("the threads of this group end each other's waits, ")
    assert threads == {
        "kind": "threads",
        "amount": 8.0,
        "lock": None,
        "name": None,
        "group": "pool",
        "text": "pool: 8 threads",
        "reason": "dependent threads",
    }
    assert (split["lock"], split["name"]) == (LOCK.id, LOCK.name)
    assert split["reason"] == "stopped replay"


def test_refused_changes_are_read_back_with_the_names_of_locks_that_ended() -> None:
    saved = snapshot_codec.document(replace(SNAPSHOT, locks=(), sections={"whatif": PARTLY}))
    read = snapshot_codec.parse(json.dumps(saved).encode(), "x").sections["whatif"]
    assert read == PARTLY
    assert read.names == {LOCK.id: LOCK.name}


def test_documents_of_earlier_versions_have_no_refused_changes() -> None:
    saved = snapshot_codec.document(replace(SNAPSHOT, sections={"whatif": PARTLY}))
    del saved["whatif"]["refused"]
    read = snapshot_codec.parse(json.dumps(saved).encode(), "x").sections["whatif"]
    assert read == replace(PARTLY, refused=())


@pytest.mark.parametrize("is_recorded", [False, True])
def test_a_note_says_what_a_recording_does_not_have(is_recorded: bool) -> None:
    found = replace(FOUND, is_recorded=is_recorded)
    notes = json_document.document(found, SNAPSHOT)["notes"]
    assert any("A recording does not say" in note for note in notes) is is_recorded
