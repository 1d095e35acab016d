"""The time of threads on the screen: bars, words, counters, and the threads with queries."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from support.driven import opened
from unit.builders import scenarios

from locktop.collector.model import PerfCounter, PerfCounters, Switches, Thread, TimeSplit
from locktop.collector.render.text import time_split
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views import thread_list
from locktop.tui.views.styled_line import STYLES, line_text
from locktop.tui.views.table import lay_out
from locktop.tui.views.thread_details import thread_details
from locktop.tui.views.time_bar import SIGNS, time_bar, time_words

VIRTUAL = "this virtual machine gives none"


def bar(width: int = 10, **shares: float) -> str:
    return line_text(time_bar(TimeSplit(**shares), width))


def test_a_bar_has_a_sign_for_each_part() -> None:
    assert bar(contended=1.0) == "━" * 10
    assert bar(cpu=0.3, runnable=0.2, contended=0.5) == "━━━━━▒▒███"
    assert bar(cpu=0.1, disk=0.2, other=0.3, idle=0.4) == "█▚▚---····"
    assert line_text(time_bar(None, 10)) == " " * 10


def test_signs_differ_and_styles_are_those_of_the_themes() -> None:
    assert len({sign for _, sign, _ in SIGNS}) == len(SIGNS)
    assert {part for part, _, _ in SIGNS} == set(TimeSplit.__struct_fields__[:-1])
    assert {style for _, _, style in SIGNS} <= set(STYLES)
    assert {part for part, _, _ in SIGNS} == set(time_split.PARTS)


def test_a_bar_fills_its_width_whatever_the_shares() -> None:
    dice = random.Random(5)
    for _ in range(2000):
        shares = [dice.choice([0.0, dice.random(), dice.random() / 50]) for _ in SIGNS]
        width = dice.randrange(1, 20)
        line = time_bar(TimeSplit(*shares), width)
        assert cell_len(line_text(line)) == width
        assert all(text for text, _ in line)
        assert len(line) <= 4, "adjacent cells of one style are one span"


def test_the_remainder_goes_to_the_part_with_the_largest_cut() -> None:
    assert bar(contended=0.49, cpu=0.07, other=0.44) == "━━━━━█----"


@pytest.mark.parametrize("width", [80, 99, 100, 120, 137, 138, 200])
def test_a_list_has_one_bar_under_its_title(width: int) -> None:
    index = SnapshotIndex(scenarios.normal())
    table = lay_out(thread_list.columns(index), width)
    heading = line_text(table.heading())
    row = line_text(table.line(index.threads[4714]))
    wide = width >= 100
    assert ("TIME" in heading) is wide
    assert len(heading) == len(row) <= width
    if wide:
        at = heading.index("TIME")
        assert row[at : at + 10] == "━━━▒██████"
        assert "╸" not in row
    else:
        assert "━━╸" in row, "the bar of the wait alone, in six cells"


def test_a_group_shows_the_mean_of_its_threads() -> None:
    index = SnapshotIndex(scenarios.pools())
    table = lay_out(thread_list.columns(index), 120)
    group = next(iter(index.groups.values()))
    threads = [replace(one, time=TimeSplit(cpu=1.0)) for one in group.threads]
    threads[0] = replace(threads[0], time=None)
    idle = replace(threads[1], time=TimeSplit(idle=1.0))
    mixed = replace(group, threads=(*threads[:2], idle))
    at = line_text(table.heading()).index("TIME")
    assert line_text(table.line(mixed))[at : at + 10] == "█████·····"


def details(thread: Thread) -> str:
    calm = scenarios.normal()
    threads = tuple(thread if one.tid == thread.tid else one for one in calm.threads)
    index = SnapshotIndex(replace(calm, threads=threads))
    return "\n".join(line_text(line) for line in thread_details(index, thread))


def worker(**more: object) -> Thread:
    one = next(thread for thread in scenarios.normal().threads if thread.tid == 4714)
    return replace(one, **more)  # type: ignore[arg-type]


def test_details_name_known_and_unknown_parts() -> None:
    said = details(worker(time=TimeSplit(cpu=0.6, contended=0.3, other=0.1, unknown=("disk",))))
    assert (
        " time      ━ lock 30%, █ on cpu 60%, - other 10%, disk not"
        " counted (sysctl kernel.task_delayacct=1 would)"
    ) in said
    assert " time " not in details(worker(time=None))
    words = "".join(one if isinstance(one, str) else one[0] for one in time_words(TimeSplit()))
    assert words == ""


def test_details_of_a_followed_thread_have_switches_and_counters() -> None:
    counted = PerfCounters(
        12.0,
        (
            PerfCounter("task-clock", "s", 5.5, 0.45),
            PerfCounter("page-faults", "", 1234.0, 0.0),
            PerfCounter("cycles", "", None, why=VIRTUAL),
            PerfCounter("instructions", "", None, why=VIRTUAL),
            PerfCounter("context-switches", "", None, why="no right"),
        ),
    )
    said = details(worker(switches=Switches(12345, 67, 8), counters=counted))
    assert " switches  12,345 to sleep, 67 put off, 8 to another cpu" in said
    assert " counted   task-clock 5.50s (45%), page-faults 1.23k (0/s), in 12.0s" in said
    assert f"cycles, instructions: n/a, {VIRTUAL}" in said
    assert "context-switches: n/a, no right" in said
    assert "to another cpu" not in details(worker(switches=Switches(1, 2, None)))


def test_instructions_per_cycle_need_both_counts() -> None:
    counted = PerfCounters(
        1.0,
        (
            PerfCounter("cycles", "", 2e9, 1e9, "not in the kernel"),
            PerfCounter("instructions", "", 3e9, 1.5e9, "not in the kernel"),
        ),
    )
    said = details(worker(counters=counted))
    assert "1.50 instructions a cycle" in said
    assert "cycles 2.00G (1.00G/s, not in the kernel)" in said


async def test_the_thread_whose_details_are_open_is_followed() -> None:
    async with opened(scenarios.normal()) as screen:
        assert screen.feed.followed == 0, "the list of locks comes first"
        await screen.keys("tab")
        first = screen.feed.followed
        assert first == 4715
        await screen.keys("down")
        assert screen.feed.followed not in (0, first)
        await screen.keys("shift+tab")
        assert screen.feed.followed == 0


async def test_only_visible_locks_have_queries_for_holders() -> None:
    async with opened(size=(120, 40)) as screen:
        worst = 2  # the headline speaks of this lock
        assert screen.feed.followed_locks == {1, worst}, "the lock of the details"
        await screen.keys("down", "down")
        assert screen.feed.followed_locks == {3, worst}
        await screen.resize(200, 60)
        assert screen.feed.followed_locks > {1, 2, 3}, "each visible row has a word"
        await screen.keys("tab")
        await screen.resize(80, 24)
        assert screen.feed.followed_locks <= {0, worst}, "no row is visible"


async def test_a_group_is_not_followed() -> None:
    async with opened(scenarios.pools()) as screen:
        await screen.keys("tab")
        assert screen.threads.current is not None
        assert screen.threads.current not in SnapshotIndex(scenarios.pools()).threads
        assert screen.feed.followed == 0


async def test_the_help_explains_the_signs() -> None:
    async with opened(scenarios.normal(), size=(120, 60)) as screen:
        await screen.keys("question_mark", "end")
        help_said = screen.text
    for _, sign, _ in SIGNS:
        assert sign in help_said


# ---- the text report ----


def page(*times: TimeSplit | None) -> list[str]:
    threads = [
        replace(worker(), tid=number, time=time) for number, time in enumerate(times, start=1)
    ]
    return list(time_split.lines(threads, "0.5 s", lambda tid: f"thread {tid}"))


def test_the_text_report_has_a_table_of_the_busiest_threads() -> None:
    said = page(
        TimeSplit(idle=1.0),
        TimeSplit(cpu=0.2, contended=0.3, other=0.5),
        TimeSplit(cpu=0.004, runnable=0.996, unknown=("disk",)),
        TimeSplit(other=1.0),
        None,
    )
    assert said[0] == "WHERE THE TIME OF THREADS WENT in the last 0.5 s, the busiest first"
    assert said[1:4] == [
        "  on cpu  wants cpu  lock  for work  disk  other  thread",
        "     <1%       100%    0%        0%     ?     0%  thread 3",
        "     20%         0%   30%        0%    0%    50%  thread 2",
    ]
    assert said[4] == "  and 1 more"
    assert said[5].startswith("  ?: the kernel does not count waits for disks")
    assert len(said) == 6


def test_no_table_without_figures_or_activity() -> None:
    assert page() == page(None, None) == page(TimeSplit(idle=1.0), TimeSplit(other=1.0)) == []
