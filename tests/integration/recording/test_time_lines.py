"""Time lines of real processes, which log their waits by their own clock."""

from __future__ import annotations

import time
from typing import NamedTuple

import pytest
from support.eventually import until
from support.targets import StartTarget, Target

from locktop.collector.analysis.timeline import cells
from locktop.collector.model import Kind, LaneState, TimeLine, WaitRecord, Window
from locktop.collector.recording.history import History
from locktop.collector.recording.memory_keeper import MemoryKeeper
from locktop.collector.recording.time_lines import TimeLineReader
from locktop.collector.sources.attach import attach

#: The rate of the library's clock is known to some digits, and the target rounds its times.
ROUNDING_NS = 50_000
#: A wait that is longer than this is in the records of the library at each level.
LONG_NS = 1_000_000


class Turn(NamedTuple):
    """One turn with the lock, as the target logged it; nanoseconds of its own clock."""

    tid: int
    requested: int
    taken: int
    given: int


class Watched(NamedTuple):
    """The log of the target, and the findings of locktop."""

    turns: list[Turn]  # in order
    records: list[WaitRecord]  # of the lock of the turns, in the order of ``turns``
    line: TimeLine


def watched(target: Target, kind: Kind) -> Watched:
    """Scan a target of ``waits_and_holds_logged`` when all its turns are over."""
    began_ns = time.time_ns() - 600 * 10**9
    logged = target.truth()["turns"]
    turns = [Turn(tid, *(round(at * 1e9) for at in times)) for tid, _, _, *times in logged]
    source = attach(target.pid, only_exact=True)
    history = History()
    try:
        keeper = MemoryKeeper(source, history, wall_ns=iter((began_ns, time.time_ns())).__next__)
        keeper.keep(source.scan())
        keeper.keep(source.scan(resolve=True))
        keeper.close()
    finally:
        source.close()
    first_ns, last_ns = TimeLineReader(history).bounds()
    records = [one for one in history.records(first_ns, last_ns) if one.kind is kind]
    by_lock: dict[int, list[WaitRecord]] = {}
    for one in records:
        by_lock.setdefault(one.lock, []).append(one)
    found = max(by_lock.values(), key=len)
    return Watched(
        turns=sorted(turns, key=lambda turn: turn.taken),
        records=sorted(found, key=lambda one: one.got_ns),
        line=TimeLineReader(history).read(found[0].began_ns - 1000, last_ns),
    )


@pytest.mark.parametrize("kind", ["mutex", "spin", "robust"])
def test_each_wait_lies_where_the_program_itself_saw_it(
    kind: str, start_target: StartTarget
) -> None:
    """No load of the machine matters: only the order of the program's and of the library's times.

    A thread logs its request before the library's wait begins, and its acquisition after the end.
    The two clocks differ by one constant.
    """
    target = start_target("waits_and_holds_logged", kind, level="all")
    found = watched(target, Kind.SPIN if kind == "spin" else Kind.MUTEX)
    pairs = list(zip(found.turns, found.records, strict=True))
    assert [turn.tid for turn, _ in pairs] == [record.tid for _, record in pairs]
    least = max(
        max(record.got_ns - turn.taken, turn.given - record.end_ns) for turn, record in pairs
    )
    most = min(record.began_ns - turn.requested for turn, record in pairs)
    assert least <= most + ROUNDING_NS

    # A thread may lose its CPU between its log and its call, and find the lock free then.
    waits = [
        record.wait_ns > 0
        for before, (turn, record) in zip(found.turns, pairs[1:], strict=False)
        if before.given - turn.requested > LONG_NS
    ]
    assert waits.count(False) <= len(waits) // 20


@pytest.mark.parametrize("kind", ["mutex", "inherit"])
def test_who_released_the_lock_woke_the_next_thread(kind: str, start_target: StartTarget) -> None:
    found = watched(start_target("waits_and_holds_logged", kind, level="all"), Kind.MUTEX)
    before = {
        (record.tid, record.got_ns): turn.tid
        for turn, record in zip(found.turns, found.records[1:], strict=False)
    }
    flows = [flow for flow in found.line.flows if (flow.to_tid, flow.woken_ns) in before]
    assert len(flows) >= 20
    for flow in flows:
        assert flow.from_tid == before[flow.to_tid, flow.woken_ns]
        assert flow.released_ns is not None


def test_the_sums_of_the_cells_are_those_of_the_records(start_target: StartTarget) -> None:
    found = watched(start_target("waits_and_holds_logged", "mutex", level="all"), Kind.MUTEX)
    lock = found.records[0].lock
    whole = sum(record.wait_ns for record in found.records)
    for count in (1, 57, 180):
        window = Window(found.line.from_ns, found.line.to_ns, count)
        sums = [
            ns
            for lane in found.line.lanes
            for cell in cells(lane.spans, window)
            for (state, of), ns in cell.items()
            if state is LaneState.WAITING and of == lock
        ]
        assert sum(sums) == whole


def test_a_wait_of_a_sampled_process_is_an_estimate(start_unprepared: StartTarget) -> None:
    """Three threads deadlock: their waits are in all samples, and never end."""
    target = start_unprepared("ring_of_three")
    target.expect("ready")
    target.go_on()
    tids = set(target.truth().values())
    source = attach(target.pid)
    history = History()
    stuck_scans = []

    def is_seen_three_times() -> bool:
        time_ns = time.time_ns()
        snapshot = source.scan()
        history.add(snapshot, time_ns)
        waiting = {thread.tid for thread in snapshot.threads if thread.waiting_for is not None}
        stuck_scans.extend([time_ns] if tids <= waiting else [])
        return len(stuck_scans) >= 3

    try:
        until(is_seen_three_times, "three scans with all three threads in a wait")
        assert source.drain() is None
    finally:
        source.close()
    found = TimeLineReader(history).read(stuck_scans[0], stuck_scans[-1])
    assert found.is_sampled
    stuck = [lane for lane in found.lanes if lane.tid in tids]
    assert len(stuck) == 3
    for lane in stuck:
        assert [(span.state, span.from_ns, span.to_ns) for span in lane.spans] == [
            (LaneState.WAITING, stuck_scans[0], stuck_scans[-1])
        ]
        assert lane.waits[-1].is_open
        assert lane.waits[-1].record.is_sampled
    assert not found.flows
