"""A snapshot with indexes: names, and chains of waiting threads."""

from __future__ import annotations

from msgspec.structs import replace
from unit.builders import records, scenarios

from locktop.collector.model import Kind
from locktop.collector.render.words.snapshot_index import SnapshotIndex


def test_a_join_of_an_unknown_thread_has_a_name() -> None:
    unknown = replace(records.lock(9, "join 0x0", Kind.JOIN), address=0)
    known = records.lock(8, "join 0x7f00", Kind.JOIN)
    index = SnapshotIndex(records.snapshot((), (unknown, known)))
    assert index.lock_name(9) == "thread join"
    assert index.lock_name(8) == "join 0x7f00"


def test_a_chain_ends_where_it_closes_a_circle() -> None:
    chain = [thread.tid for thread in SnapshotIndex(scenarios.deadlock()).chain(4730)]
    assert chain == [4730, 4731, 4732]


def test_threads_of_one_name_have_different_labels() -> None:
    calm = scenarios.normal()
    same = tuple(replace(t, name="ThreadPoolForeg") for t in calm.threads[:3])
    index = SnapshotIndex(replace(calm, threads=same + calm.threads[3:]))
    assert index.thread_name(4711) == "ThreadPo:4711"
    assert index.thread_name(4712) == "ThreadPo:4712"
    assert index.thread_name(4715) == "reader"
    assert index.thread_name(99) == "99"
