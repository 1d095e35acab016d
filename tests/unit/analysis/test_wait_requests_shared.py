"""Requests that many waits share: one scan makes them once."""

from __future__ import annotations

from msgspec.structs import replace
from unit.builders import records

from locktop.collector.analysis.wait_requests import build_graph
from locktop.collector.model import Held, Kind, ThreadState


def test_the_waits_at_one_barrier_share_their_requests() -> None:
    parties = 10
    wait = replace(records.wait(1, Kind.BARRIER, 5.0), parties=parties)
    threads = [
        records.thread(tid, "early", ThreadState.WAITING, waiting_for=wait)
        for tid in range(1, parties)
    ]
    late = records.thread(99, "late", ThreadState.RUNNING)
    graph = build_graph([*threads, late], {1: records.lock(1, "g", Kind.BARRIER)})
    first, *others = [one.requests for one in graph.blocked.values()]
    assert [request.providers for request in first] == [{99}]
    assert all(requests is first for requests in others)


def test_the_readers_behind_one_writer_share_their_request() -> None:
    held = (Held(1, 0, None, 0, shared=True),)
    writer = records.wait(1, Kind.RWLOCK, 9.0, 1)
    reader = replace(records.wait(1, Kind.RWLOCK, 5.0, 1), shared=True)
    threads = [
        records.thread(1, "holder", ThreadState.RUNNING, holds=held),
        records.thread(2, "writer", ThreadState.WAITING, waiting_for=writer),
        *[records.thread(n, "r", ThreadState.WAITING, waiting_for=reader) for n in range(3, 9)],
    ]
    lock = records.lock(1, "g", Kind.RWLOCK, writers_first=True)
    graph = build_graph(threads, {1: lock})
    behind = [graph.blocked[n].requests for n in range(3, 9)]
    assert [request.providers for request in behind[0]] == [{2}]
    assert all(requests[0] is behind[0][0] for requests in behind)
