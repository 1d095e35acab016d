"""A mark, and the comparison of the time since with the time before."""

from __future__ import annotations

from msgspec.structs import replace
from support.driven import opened
from unit.builders import scenarios

from locktop.collector.model import Snapshot
from locktop.collector.recording.history import History

_BEGIN, _SECOND = 1_700_000_000 * 10**9, 10**9


def _history(seconds: int = 8, lost_since: int = 0, lost: int = 0) -> History:
    """Return scans of each second; ``lost`` records are lost from the second ``lost_since`` on."""
    history = History()
    for second in range(seconds):
        missing = lost if second >= lost_since else 0
        scan = replace(scenarios.calls(second), lost_events=missing)
        history.add(scan, _BEGIN + second * _SECOND)
    return history


async def test_without_a_mark_or_a_memory_there_is_a_message() -> None:
    async with opened() as screen:
        await screen.keys("D")
        await screen.says("Nothing is kept: --history 0 says so.")
    async with opened(scenarios.calls(0), moments=History()) as screen:
        await screen.keys("D")
        await screen.says("There is no mark to compare with: m marks a moment.")


async def test_the_waits_since_the_mark_are_compared_with_those_before() -> None:
    async with opened(scenarios.calls(8), moments=_history()) as screen:
        await screen.keys(*["left_square_bracket"] * 4)
        await screen.says("PAST")
        await screen.keys("m", *["right_square_bracket"] * 2, "D")
        await screen.says("since your mark 1")
        assert "minus A as long before" in screen.text
        assert "B minus A" in screen.text
        await screen.keys("3")
        assert "[3 Thr" in screen.first


async def test_the_comparison_says_how_many_records_are_lost_of_each_part() -> None:
    past = _history(lost_since=5, lost=120)
    async with opened(scenarios.calls(8), moments=past) as screen:
        await screen.keys(*["left_square_bracket"] * 4)
        await screen.says("PAST")
        await screen.keys("m", *["right_square_bracket"] * 2, "D")
        await screen.says("records lost: A 0, B 120")


async def test_sums_of_counters_replace_too_many_records() -> None:
    """Nearly all records are lost, as of a busy program; the counters have all waits."""

    def scan(second: int) -> Snapshot:
        used = replace(scenarios.normal(), lost_events=second * 90_000)
        first = replace(used.locks[0], wait_s=100.0 + 0.25 * second)
        return replace(used, locks=(first, *used.locks[1:]), duration_s=100.0 + second)

    history = History()
    for second in range(9):
        history.add(scan(second), _BEGIN + second * _SECOND)
    async with opened(scan(8), moments=history) as screen:
        await screen.keys(*["left_square_bracket"] * 4)
        await screen.says("PAST")
        await screen.keys("m", *["right_square_bracket"] * 3, "D")
        await screen.says("since your mark 1")
        assert "┄ Too many waits to read each" in screen.text
        assert "records lost" not in screen.text


async def test_the_title_says_how_much_is_kept_from_before_the_mark() -> None:
    async with opened(scenarios.calls(8), moments=_history()) as screen:
        await screen.keys("left_square_bracket", "home")
        await screen.says("PAST")
        await screen.keys("right_square_bracket", "m", *["right_square_bracket"] * 4, "D")
        await screen.says("since your mark 1")
        assert "B 4 s since" in screen.text
        assert "minus A 1 s before" in screen.text


async def test_a_mark_at_the_oldest_moment_has_nothing_before() -> None:
    async with opened(scenarios.calls(3), moments=_history(3)) as screen:
        await screen.keys("left_square_bracket", "home")
        await screen.says("PAST")
        await screen.keys("m", "end", "D")
        await screen.says("Nothing is kept from before the mark: mark a later moment.")


async def test_the_screen_says_what_changed_of_the_locks() -> None:
    def scan(second: int) -> Snapshot:
        wait_s = 0.1 * second + 0.4 * max(0, second - 4)
        used = replace(scenarios.calls(second), duration_s=100.0 + second)
        first = replace(used.locks[0], name="hot_mu", wait_s=wait_s, idle_s=0.0, idle=False)
        return replace(used, locks=(first, *used.locks[1:]))

    history = History()
    for second in range(9):
        history.add(scan(second), _BEGIN + second * _SECOND)
    async with opened(scan(8), moments=history) as screen:
        await screen.keys(*["left_square_bracket"] * 4)
        await screen.says("PAST")
        await screen.keys("m", *["right_square_bracket"] * 3, "D")
        await screen.says("since your mark 1")
        assert "hot_mu: waits 5.0 times as long: 0.50 s/s, was 0.10 s/s" in screen.text
