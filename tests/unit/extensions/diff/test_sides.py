"""Sides of a comparison: snapshots, and spans that are cut into pieces."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders.compared import BEGIN, MUTEX, SECOND, PastScans, scan, used_lock
from unit.builders.records import lock, some_idle

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.diff.model import LockGroup, MatchKey
from locktop.collector.extensions.diff.sides import (
    MAX_PIECES,
    side_of_recording,
    side_of_snapshot,
    side_of_span,
)
from locktop.collector.model import Kind, MarkRecord
from locktop.collector.recording.moments import Moments


def past(seconds: int) -> PastScans:
    return PastScans([scan(second, used_lock(second)) for second in range(seconds)])


def test_a_snapshot_is_one_piece_since_its_counters_began() -> None:
    side = side_of_snapshot(scan(5, used_lock(5)), "a.json")
    assert (side.title, side.comm, side.pid, side.duration_s) == ("a.json", "store", 4711, 15.0)
    [piece] = side.pieces
    assert piece.duration_s == 15.0
    assert piece.locks[MUTEX].acquisitions == 500.0
    assert piece.locks[MUTEX].wait_s == pytest.approx(1.0)
    assert piece.marks == {}


def test_a_snapshot_of_no_time_cannot_be_compared() -> None:
    with pytest.raises(LocktopError, match=r"a\.json: .*no time"):
        side_of_snapshot(replace(scan(0), duration_s=0.0), "a.json")


def test_a_recording_is_cut_at_its_snapshots() -> None:
    side = side_of_recording(past(6), None, None, "a.rec")
    assert side.duration_s == 5.0
    assert [piece.duration_s for piece in side.pieces] == [1.0] * 5
    assert all(piece.locks[MUTEX].acquisitions == 100.0 for piece in side.pieces)


def test_a_span_has_the_figures_of_its_time_alone() -> None:
    side = side_of_recording(past(9), "+2s", "+5s", "a.rec")
    assert (side.duration_s, len(side.pieces)) == (3.0, 3)
    with pytest.raises(LocktopError, match="one snapshot alone"):
        side_of_recording(past(9), "+2s", "+2s", "a.rec")
    with pytest.raises(LocktopError, match="ends before it begins"):
        side_of_recording(past(9), "+3s", "+2s", "a.rec")


@pytest.mark.parametrize("seconds", [33, 34, 200])
def test_a_long_span_has_few_pieces(seconds: int) -> None:
    side = side_of_recording(past(seconds), None, None, "a.rec")
    assert len(side.pieces) == MAX_PIECES
    assert sum(piece.duration_s for piece in side.pieces) == side.duration_s == seconds - 1
    taken = [piece.locks[MUTEX].acquisitions for piece in side.pieces]
    assert sum(count for count in taken if count) == 100 * (seconds - 1)


def test_a_program_that_was_executed_within_a_span_begins_there() -> None:
    scans = [scan(second, used_lock(second)) for second in range(3)]
    fresh = replace(scans[0].process, exe="/usr/bin/other")
    scans += [
        replace(scan(0, used_lock(second)), duration_s=float(second), process=fresh)
        for second in (1, 2)
    ]
    side = side_of_recording(PastScans(scans), None, None, "a.rec")
    assert [piece.duration_s for piece in side.pieces] == [1.0, 1.0]
    assert any("executed" in note for note in side.notes)


def test_a_lock_is_matched_by_the_name_that_is_known_in_the_end() -> None:
    names = ("mutex 0x55d000001040", "mutex 0x55d000001040", "cache_mu")
    scans = [scan(second, used_lock(second, name)) for second, name in enumerate(names)]
    side = side_of_recording(PastScans(scans), None, None, "a.rec")
    assert [list(piece.locks) for piece in side.pieces] == [[MUTEX], [MUTEX]]


def test_locks_that_differ_by_a_number_have_one_key() -> None:
    locks = [used_lock(1, f"shard {number}", number) for number in (1, 2, 10)]
    side = side_of_snapshot(scan(1, *locks), "a.json")
    key = MatchKey(Kind.MUTEX, "shard #")
    assert side.locks == {key: LockGroup(3, ("shard 1", "shard 2", "shard 10"))}
    assert side.pieces[0].locks[key].acquisitions == 300.0


def test_locks_of_two_makers_are_different() -> None:
    locks = [
        used_lock(1, f"mutex made in {function} (cache.c:{line})", line)
        for function, line in (("make_cache", 12), ("make_cache", 14), ("make_log", 16))
    ]
    side = side_of_snapshot(scan(1, *locks), "a.json")
    assert {key.name: group.count for key, group in side.locks.items()} == {
        "mutex made in make_cache (cache.c:#)": 2,
        "mutex made in make_log (cache.c:#)": 1,
    }


def test_locks_of_two_kinds_are_different() -> None:
    side = side_of_snapshot(scan(1, used_lock(1), lock(2, "cache_mu", Kind.RWLOCK)), "a.json")
    assert len(side.locks) == 2


def test_locks_without_a_name_are_one_row_without_an_address() -> None:
    locks = [used_lock(1, f"mutex {number:#x}", number) for number in (0x7F10, 0x7F20)]
    side = side_of_snapshot(scan(1, *locks), "a.json")
    assert side.locks == {MatchKey(Kind.MUTEX, "mutex #"): LockGroup(2, ("mutex #",))}


def test_idle_waits_are_no_contention() -> None:
    mixed = some_idle(used_lock(1, wait_s=3.0), 2.0)
    [piece] = side_of_snapshot(scan(1, mixed), "a.json").pieces
    assert piece.locks[MUTEX].wait_s == pytest.approx(1.0)
    assert piece.locks[MUTEX].contended is None


def marked(*seconds: float, text: str = "request {} done") -> list[MarkRecord]:
    return [
        MarkRecord(1, BEGIN + round(second * SECOND), text.format(number))
        for number, second in enumerate(seconds)
    ]


def test_marks_are_counted_in_their_pieces_without_their_numbers() -> None:
    scans = [scan(second, used_lock(second)) for second in range(4)]
    moments = PastScans(scans, marked(0.5, 1.5, 1.6, 2.5, 3.0))
    side = side_of_recording(moments, None, None, "a.rec")
    assert [piece.marks for piece in side.pieces] == [
        {"request # done": 1},
        {"request # done": 2},
        {"request # done": 2},
    ]
    assert not side.marks_lost


def test_a_side_says_that_marks_were_lost() -> None:
    scans = [scan(second, used_lock(second)) for second in range(4)]
    assert side_of_recording(PastScans(scans, marked(0.5), lost=1), None, None, "a").marks_lost
    assert not side_of_recording(PastScans(scans, lost=1), None, None, "a").marks_lost


def test_a_past_without_marks_has_none() -> None:
    class WithoutMarks:
        def __init__(self, moments: PastScans) -> None:
            self.times_ns, self.snapshot_at = moments.times_ns, moments.snapshot_at
            self.notables, self.records = moments.notables, moments.records

    moments: Moments = WithoutMarks(past(3))
    side = side_of_span(moments, BEGIN, BEGIN + 2 * SECOND, "a.rec")
    assert [piece.marks for piece in side.pieces] == [{}, {}]
