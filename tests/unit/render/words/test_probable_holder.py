"""The words about probable holders."""

from __future__ import annotations

from msgspec.structs import replace
from unit.builders import records

from locktop.collector.model import HolderEvidence, Kind, Lock, ProbableHolder
from locktop.collector.render.words import probable_holder

SITES = {0x10: records.frame("flush", "store.rs", 41)}


def lock(*tids: int, **changes: object) -> Lock:
    holders = tuple(
        ProbableHolder(tid=tid, evidence=HolderEvidence.GUARD, site=0x10) for tid in tids
    )
    base = replace(records.lock(1, "m", Kind.FUTEX), holders_probable=holders)
    return replace(base, **changes)


def test_one_holder_has_its_evidence() -> None:
    phrase = probable_holder.phrase(lock(7), "worker-3", SITES)
    assert phrase == ("probably held by worker-3, which goes on to release it in flush store.rs:41")
    assert probable_holder.phrase(lock(7), "worker-3", {}) == "probably held by worker-3"


def test_several_holders_are_named_alone() -> None:
    assert probable_holder.phrase(lock(7, 8), "a and b", SITES) == "probably held by a and b"


def test_readers_are_counted() -> None:
    readers = lock(7, 8, kind=Kind.RWLOCK, readers=2)
    assert probable_holder.phrase(readers, "a and b", SITES) == (
        "held by 2 readers, probably a and b"
    )


def test_a_known_holder_comes_first() -> None:
    assert probable_holder.tids(lock(7, holders=(9,))) == ()
    assert probable_holder.tids(lock(7, 8)) == (7, 8)
