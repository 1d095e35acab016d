"""The holders of a lock during a wait, compared with the times of the program itself."""

from __future__ import annotations

import time
from typing import NamedTuple

import pytest
from support.eventually import until
from support.past import past
from support.targets import StartTarget, Target

from locktop.collector.analysis.timeline_holds import holders_during
from locktop.collector.model import TimedWait, TimeLine
from locktop.collector.recording.history import History
from locktop.collector.recording.memory_keeper import MemoryKeeper
from locktop.collector.recording.time_lines import TimeLineReader
from locktop.collector.render.text import timeline
from locktop.collector.render.text.timeline import longest_waits
from locktop.collector.render.words import readers
from locktop.collector.render.words.timeline import time_of_day
from locktop.collector.sources.attach import attach

#: The rate of the library's clock is known to some digits, and the target rounds its times.
ROUNDING_NS = 50_000
#: Longer than a thread that is woken takes on a busy machine, as a rule.
STALL_S = 1.0


class Turn(NamedTuple):
    """One turn with the lock, as the target logged it; nanoseconds of its own clock."""

    name: str
    tid: int
    requested: int
    taken: int
    given: int


def stalled(target: Target, waiters: int) -> tuple[TimeLine, dict[str, Turn]]:
    """Scan a target while its lock is held for long, and once after that."""
    assert target.line() == "held"

    with past(target) as scans:

        def have_waited() -> bool:
            waits = [thread.waiting_for for thread in scans.scan().threads]
            long = [wait for wait in waits if wait is not None and wait.duration_s >= STALL_S]
            return len([wait for wait in long if not wait.idle]) >= waiters

        until(have_waited, "the waiters have waited for long")
        target.go_on()
        turns = turns_of(target)
        scans.scan()
        return scans.line(), turns


def turns_of(target: Target) -> dict[str, Turn]:
    """Return what each thread measured, by name."""
    logged = target.truth()["turns"]
    turns = [Turn(name, tid, *(round(at * 1e9) for at in times)) for name, tid, *times in logged]
    return {turn.name: turn for turn in turns}


def wait_of(line: TimeLine, tid: int) -> TimedWait:
    """Return the longest wait of a thread."""
    return next(one for one in longest_waits(line.lanes) if one.record.tid == tid)


def sentences(line: TimeLine, wait: TimedWait) -> list[str]:
    """Return what the text says below a wait, without its stack."""
    lines = timeline.render(line, 80).splitlines()
    begin = next(
        number
        for number, text in enumerate(lines)
        if text.startswith(f"  {time_of_day(wait.record.began_ns, 6)}")
    )
    below = []
    for text in lines[begin + 1 :]:
        if not text.startswith("    ") or text.startswith("      "):
            break
        below.append(text.strip())
    return below


def test_the_thread_that_held_for_long_comes_before_the_one_that_released_last(
    start_target: StartTarget,
) -> None:
    line, turns = stalled(start_target("stall_before_quick_turns", "long", level="blocks"), 5)
    compactor = turns["compactor"]
    last = max(turns.values(), key=lambda turn: turn.taken)
    wait = wait_of(line, last.tid)
    found = holders_during(wait, line)
    assert found is not None
    assert found.shares[0].tid == compactor.tid
    assert not found.shares[0].is_lower_bound
    # The compactor lacks the part between its release and the end of the wait, and no more.
    lacking = last.taken - compactor.given
    assert found.wait_ns - lacking - ROUNDING_NS <= found.shares[0].held_ns <= found.wait_ns
    assert {share.tid for share in found.shares[1:]} <= {turn.tid for turn in turns.values()}
    said = sentences(line, wait)
    assert said[0].startswith("compactor had it for ")
    assert "in read(0 -> " in said[0]
    assert any(text.startswith("then serve-") for text in said)
    assert any(" released it at " in text for text in said[1:])


def test_a_scan_shows_the_holder_where_the_level_records_no_hold(
    start_target: StartTarget,
) -> None:
    line, turns = stalled(start_target("stall_before_quick_turns", "long", level="contended"), 5)
    compactor = turns["compactor"]
    for name in ("serve-0", "serve-4"):
        wait = wait_of(line, turns[name].tid)
        found = holders_during(wait, line)
        assert found is not None
        assert found.shares[0].tid == compactor.tid
        assert found.shares[0].is_lower_bound
        assert found.shares[0].held_ns <= compactor.given - compactor.taken + ROUNDING_NS
        assert sentences(line, wait)[0].startswith("compactor had it for at least ")


def test_without_a_scan_the_holder_at_the_begin_is_all_that_is_known(
    start_target: StartTarget,
) -> None:
    """The records of the ring alone: at level contended the long hold has none."""
    target = start_target("stall_before_quick_turns", "long", level="contended")
    assert target.line() == "held"
    target.go_on()
    turns = turns_of(target)
    line = after_the_end(target)
    last = max(turns.values(), key=lambda turn: turn.taken)
    wait = wait_of(line, last.tid)
    found = holders_during(wait, line)
    assert found is not None
    assert turns["compactor"].tid not in {share.tid for share in found.shares}
    said = sentences(line, wait)
    assert said[0].startswith(f"{turns['compactor'].tid} had it when the wait began; no hold is")
    _, second, *_ = sorted(turns.values(), key=lambda turn: turn.taken)
    first = wait_of(line, second.tid)
    assert holders_during(first, line) is None
    assert sentences(line, first) == [
        f"{turns['compactor'].tid} had the lock when the wait began; its release is not recorded"
    ]


def after_the_end(target: Target) -> TimeLine:
    """Return the time line of a target that has released all its locks, from its records."""
    began_ns = time.time_ns() - 600 * 10**9
    source = attach(target.pid, only_exact=True)
    history = History()
    try:
        keeper = MemoryKeeper(source, history, wall_ns=iter((began_ns, time.time_ns())).__next__)
        keeper.keep(source.scan())
        keeper.keep(source.scan(resolve=True))
        keeper.close()
    finally:
        source.close()
    reader = TimeLineReader(history)
    return reader.read(*reader.bounds())


def test_a_lock_that_goes_through_five_threads_has_no_long_holder(
    start_target: StartTarget,
) -> None:
    target = start_target("stall_before_quick_turns", "equal", level="all")
    turns = turns_of(target)
    line = after_the_end(target)
    *before, last = sorted(turns.values(), key=lambda turn: turn.taken)
    wait = wait_of(line, last.tid)
    found = holders_during(wait, line)
    assert found is not None
    shares = {share.tid: share.held_ns for share in found.shares}
    assert set(shares) == {turn.tid for turn in before}
    for turn in before[1:]:
        assert shares[turn.tid] >= turn.given - turn.taken - ROUNDING_NS
    assert sum(shares.values()) + found.unrecorded_ns == found.wait_ns
    # On a busy machine, the time to wake up comes before them.
    (others,) = (text for text in sentences(line, wait) if text.startswith("then "))
    assert others.endswith(", 1 more thread")


@pytest.mark.parametrize("level", ["contended", "all"])
def test_readers_that_had_the_lock_together_stand_beside_each_other(
    level: str, start_target: StartTarget
) -> None:
    line, turns = stalled(start_target("stall_before_quick_turns", "readers", level=level), 1)
    writer = turns.pop("writer")
    found = holders_during(wait_of(line, writer.tid), line)
    assert found is not None
    assert {share.tid for share in found.shares} == {turn.tid for turn in turns.values()}
    assert all(share.is_shared and share.held_ns <= found.wait_ns for share in found.shares)
    said = sentences(line, wait_of(line, writer.tid))
    assert said[1].startswith("beside it reader-")


def test_a_sampled_holder_is_an_estimate(start_unprepared: StartTarget) -> None:
    line, turns = stalled(start_unprepared("stall_before_quick_turns", "long"), 5)
    wait = wait_of(line, turns["serve-4"].tid)
    found = holders_during(wait, line)
    assert found is not None
    assert found.is_estimate
    assert found.shares[0].tid == turns["compactor"].tid
    assert " had it for about " in sentences(line, wait)[0]


def words_about_readers(target: Target) -> str:
    """Return who had the lock while the writer waited, once scans tell."""
    target.expect("ready")
    words: list[str] = []
    with past(target) as scans:
        (writer,) = [thread.tid for thread in scans.scan().threads if thread.name == "prices"]

        def are_known() -> bool:
            scans.scan()
            line = scans.line()
            said = sentences(line, wait_of(line, writer))
            words[:] = [text for text in said if text.startswith("readers had it in ")]
            return bool(words)

        until(are_known, "scans that show readers")
    return words[0]


def test_readers_that_take_turns_are_known_by_the_scans(start_target: StartTarget) -> None:
    assert "query" in words_about_readers(start_target("starved_update"))


def test_the_readers_of_a_sampled_lock_are_known_by_their_number(
    start_unprepared: StartTarget,
) -> None:
    assert words_about_readers(start_unprepared("starved_update")).endswith(readers.UNKNOWN)
