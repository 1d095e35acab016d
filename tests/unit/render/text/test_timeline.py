"""The time line as text for a pipe."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from support.pages import page
from support.seeds import seeds
from unit.builders import records
from unit.builders.time_lines import FixedPast, at, record, relay
from unit.builders.waits import wait, waiting

from locktop.collector.model import Kind, Notable, NotableKind, ThreadState, TimeLine
from locktop.collector.recording.time_lines import TimeLineReader
from locktop.collector.render.text import timeline


@pytest.fixture
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Times of day are those of UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def found(past: FixedPast | None = None) -> TimeLine:
    reader = TimeLineReader(past or relay())
    return reader.read(*reader.bounds())


@pytest.mark.parametrize("width", [60, 80, 200])
def test_each_lane_is_as_wide_as_wanted(width: int) -> None:
    text = timeline.render(found(), width)
    assert max(len(line) for line in text.splitlines()) <= max(width, 84)
    lanes = [line for line in text.splitlines() if re.match(r"(worker|logger)", line)]
    assert {len(line) for line in lanes} == {width}


def test_the_text_has_lanes_sums_waits_and_hand_overs() -> None:
    text = timeline.render(found(), 80)
    assert "store 4711 on db1: 10.0 s from" in text
    assert re.search(r"^worker-1 .* 3\.00s$", text, re.M)
    assert "  a      5.94 s  journal" in text
    assert "  b     50.0 ms  cache" in text
    assert "The longest of 110 waits" in text
    assert re.search(r"worker-\d waited 60\.0 ms for mutex journal", text)
    assert "    worker-0 had it for 60.0 ms of the 60.0 ms, taken in " in text
    assert re.search(r"worker-0 released it at .*, 0 before worker-1 got it", text)
    assert "cache_get cache.c:42" in text


def test_a_wait_that_goes_on_and_the_known_holder() -> None:
    scans = {at(0): waiting(), at(500): waiting(t1=wait(duration_s=0.4))}
    text = timeline.render(found(FixedPast(scans)), 80)
    assert "t1 has waited 400 ms for mutex" in text
    assert "had the lock when the wait began" in text or "held by" in text


def test_estimates_losses_and_alerts_are_named() -> None:
    base = records.sampled(records.snapshot((), ()))
    mark = Notable(at(200), NotableKind.MARK, "deploy")
    past = FixedPast({at(0): base, at(500): replace(base, lost_events=1234)}, notables=[mark])
    text = timeline.render(found(past), 80)
    assert "the waits are estimates" in text
    assert "1,234 records were overwritten unread" in text
    assert "mark: deploy" in text
    assert "No thread waited for a lock." in text


def test_a_stranger_may_name_any_times() -> None:
    """The times of the records and of the waits of a snapshot are those of a damaged file."""
    for seed in seeds(20):
        chosen = random.Random(seed)
        far = (0, 1, 10**12, 2**63, 10**28, -(10**28), at(100), at(400))
        made = [
            replace(
                record(chosen.randint(0, 3), 0, 0),
                began_ns=chosen.choice(far),
                wait_ns=abs(chosen.choice(far)),
                hold_ns=chosen.choice((None, abs(chosen.choice(far)))),
            )
            for _ in range(30)
        ]
        waits = {
            f"t{tid}": wait(duration_s=chosen.choice((0.0, -1e18, 1e18)), seq=tid) for tid in (1, 2)
        }
        past = FixedPast({at(0): waiting(**waits), at(500): waiting(**waits)}, made)
        text = timeline.render(found(past), 80)
        assert "store 4711" in text


def many_locks(notables: int = 21) -> FixedPast:
    """Threads wait once each for one of ten locks; some waits differ from the usual ones."""
    waits = [record(10 + n, 20.0 * n, 10.0 + n, 1.0, lock=1 + n, stack=0) for n in range(10)]
    waits[9] = replace(waits[9], timed_out=True, holder=18)
    waits[8] = replace(waits[8], kind=Kind.SEM, stack=1, is_sampled=True)
    names = [records.thread(10 + n, f"worker-{n}", ThreadState.RUNNING) for n in range(11)]
    names.append(records.thread(30, "a_name_of_many_letters", ThreadState.RUNNING))
    waits.append(record(30, 100.0, 60.0, None, lock=1, stack=2, holder=31))
    locks = tuple(records.lock(1 + n, f"g_{n}") for n in range(10))
    base = records.snapshot(tuple(names), locks)
    marks = [Notable(at(10.0 * n), NotableKind.MARK, f"step {n}") for n in range(notables)]
    return FixedPast({at(0): base, at(500): base}, waits, marks)


@pytest.mark.parametrize(
    ("name", "past"),
    [
        ("timeline", relay(1)),
        ("timeline-many-locks", many_locks()),
        ("timeline-quiet", FixedPast(many_locks().snapshots)),
    ],
)
@pytest.mark.usefixtures("in_utc")
def test_the_pages_of_a_time_line(name: str, past: FixedPast) -> None:
    assert timeline.render(found(past), 80) == page(name)


@pytest.mark.usefixtures("in_utc")
def test_a_time_line_lists_twenty_alerts_and_marks() -> None:
    text = timeline.render(found(many_locks(20)), 80)
    assert "03:12:45.190 mark: step 19\n\nThe longest of 11 waits" in text
