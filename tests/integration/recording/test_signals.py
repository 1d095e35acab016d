"""Records of signals, and of readers and writers, at the level that records all."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from support.targets import StartTarget, Target

from locktop.collector.model import Kind, SignalRecord, WaitRecord
from locktop.collector.shm import slot_batch
from locktop.collector.sources.attach import attach


def recorded(target: Target) -> tuple[list[WaitRecord], list[SignalRecord]]:
    source = attach(target.pid)
    try:
        source.scan()
        drain = source.drain()
        assert drain is not None
        batch = drain.take(0.0).slots
        drain.close()
    finally:
        source.close()
    from_ns, to_ns = 0, time.time_ns() + 10**10
    return (
        slot_batch.decode_span(batch, from_ns, to_ns),
        slot_batch.decode_signals(batch, from_ns, to_ns),
    )


def test_level_all_records_each_signal_and_who_reads(start_target: StartTarget) -> None:
    target = start_target("signals_and_readers", level="all")
    target.expect("ready")
    target.go_on()
    truth = target.truth()
    waits, signals = recorded(target)
    assert Counter((one.kind, one.wakes_all) for one in signals) == {
        (Kind.SEM, False): truth["posts"],
        (Kind.COND, False): truth["signals"],
        (Kind.COND, True): truth["broadcasts"],
    }
    assert {one.tid for one in signals} == {truth["tid"]}
    assert [one.time_ns for one in signals] == sorted(one.time_ns for one in signals)
    holds = [one for one in waits if one.kind is Kind.RWLOCK]
    assert Counter(one.is_shared for one in holds) == {
        True: truth["reads"],
        False: truth["writes"],
    }
    assert not [one for one in waits if one.kind in (Kind.SEM, Kind.COND)]


@pytest.mark.parametrize("level", ["contended", "blocks"])
def test_other_levels_record_no_signal(start_target: StartTarget, level: str) -> None:
    target = start_target("signals_and_readers", level=level)
    target.expect("ready")
    target.go_on()
    target.truth()
    assert recorded(target) == ([], [])
