"""The process picker: its rows, its advice, and what Enter does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.driven import says, settle
from support.feed import text_of

from locktop.collector.errors import LocktopError
from locktop.collector.linux.ptrace_access import HOW_TO_PRELOAD
from locktop.collector.sources.base import Source
from locktop.collector.sources.discover import Candidate
from locktop.collector.sources.stuck_survey import StuckThreads, SurveyStep
from locktop.tui.screens.process_picker import PickerApp, Survey

UNPREPARED = Candidate(
    1,
    "init",
    "/sbin/init",
    "init --user",
    "root",
    1,
    False,
    f"it runs without the library; {HOW_TO_PRELOAD}",
)
STATIC = Candidate(
    88,
    "tool",
    "/usr/bin/tool --serve",
    "tool --serve",
    "app",
    2,
    False,
    "it is statically linked, so no library can be preloaded into it",
)


def ready(pid: int, threads: int) -> Candidate:
    command = f"app-{pid} --serve"
    return Candidate(pid, f"app-{pid}", command, command, "app", threads, True, "")


def refuse(pid: int) -> Source:
    raise LocktopError(f"no such process: {pid}")


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_the_picker_says_why_no_process_is_ready(size: tuple[int, int]) -> None:
    app = PickerApp(lambda: [UNPREPARED, STATIC], refuse, "night")
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        lines = text_of(app).splitlines()
        assert lines[1].startswith(" No process runs with the library.")
        assert "locktop run -- COMMAND" in lines[2]
        assert lines[3].startswith(" Enter watches one without it")
        assert any("0 of 2 run with the library" in line for line in lines)
        (init,) = (line for line in lines if "init --user" in line)
        assert "runs without the" in init
        (tool,) = (line for line in lines if "tool --serve" in line)
        assert "statically linked" in tool
        assert all(len(line) <= size[0] for line in lines)


async def test_the_picker_shows_a_refusal_and_stays() -> None:
    app = PickerApp(lambda: [UNPREPARED, STATIC], refuse, "night")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("down", "enter")
        await settle(pilot)
        assert "no such process: 1" in text_of(app)
        assert app.is_running


async def rows_of(app: PickerApp, size: tuple[int, int] = (80, 24)) -> list[str]:
    """Return the rows after the survey, from the title of the list on."""
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.app.workers.wait_for_complete()
        await settle(pilot)
        lines = text_of(app).splitlines()
    first = next(number for number, line in enumerate(lines) if "Processes" in line)
    return lines[first:]


def steps(stuck: dict[int, StuckThreads | None]) -> Survey:
    """Return a survey that learned this, by pid."""
    return lambda _: iter([SurveyStep(pid, threads) for pid, threads in stuck.items()])


async def test_the_most_stuck_process_is_the_first_row() -> None:
    survey = steps(
        {
            7: StuckThreads(0, 0.0),
            8: StuckThreads(3, 0.5),
            9: StuckThreads(2, 1.0, "certain"),
            88: StuckThreads(2, 1.5, is_lower_bound=True),
            11: StuckThreads(2, 0.1, "possible"),
        }
    )
    candidates = [*(ready(pid, threads=pid) for pid in (7, 8, 9, 10, 11)), STATIC]
    title, heads, *rows = await rows_of(PickerApp(lambda: candidates, refuse, "night", survey))
    assert "5 of 6 run with the library" in title
    assert "scanned so far" not in title
    assert heads.split() == ["PID", "WAITING", "LONGEST", "NAME", "COMMAND", "STATE"]
    assert [row.split()[0] for row in rows[:6]] == ["9", "11", "88", "8", "7", "10"]
    assert "DEADLOCK" in rows[0]
    assert "possible deadlock" in rows[1]
    assert rows[2].split()[1:3] == ["2", ">1.50s"]
    assert "may be stuck" in rows[2]
    assert rows[3].split()[1:3] == ["3", "500ms"]
    assert "stuck" not in rows[3], "so short a wait is no sign of anything"
    assert rows[5].split()[1:3] == ["-", "-"]


async def test_forty_columns_have_room_for_the_state() -> None:
    survey = steps({88: StuckThreads(2, 1.5, "certain")})
    app = PickerApp(lambda: [STATIC], refuse, "night", survey)
    _, heads, row, *_ = await rows_of(app, (40, 24))
    assert heads.split() == ["PID", "WAITING", "NAME", "STATE"]
    assert row.endswith("DEADLOCK")


async def test_processes_of_one_thread_come_last() -> None:
    candidates = [ready(5, threads=1), UNPREPARED, STATIC, ready(6, threads=2)]
    _, _, *rows = await rows_of(PickerApp(lambda: candidates, refuse, "night", steps({})))
    assert [row.split()[0] for row in rows[:4]] == ["6", "88", "5", "1"]


async def test_a_survey_that_goes_on_says_how_far_it_is() -> None:
    def endless(_: object) -> Iterator[SurveyStep]:
        yield SurveyStep(88, StuckThreads(0, 0.0))
        yield SurveyStep(88, None, pause_s=3600.0, is_last=False)

    app = PickerApp(lambda: [UNPREPARED, STATIC], refuse, "night", endless)
    async with app.run_test(size=(80, 24)) as pilot:
        await says(app, pilot, "1 scanned so far")


async def test_a_second_survey_forgets_no_stuck_thread_before_its_scan() -> None:
    """The threads that wait for a lock of Python wait for work, as far as a glance can tell."""
    begun = 0

    def survey(_: object) -> Iterator[SurveyStep]:
        nonlocal begun
        begun += 1
        yield SurveyStep(88, StuckThreads(0, 0.0), is_last=False)
        if begun == 2:
            yield SurveyStep(88, None, pause_s=3600.0, is_last=False)
        yield SurveyStep(88, StuckThreads(4, 2.0) if begun == 1 else StuckThreads(0, 0.0))

    app = PickerApp(lambda: [UNPREPARED, STATIC], refuse, "night", survey)
    async with app.run_test(size=(80, 24)) as pilot:
        await says(app, pilot, "may be stuck")
        await pilot.press("r")
        await says(app, pilot, "1 scanned so far")
        assert "may be stuck" in text_of(app)
        await pilot.press("r")
        await says(app, pilot, "may be stuck", wanted=False)  # as the last scan has it


async def test_the_help_has_the_keys_of_the_picker() -> None:
    app = PickerApp(lambda: [UNPREPARED, STATIC], refuse, "night", steps({}))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("question_mark")
        await settle(pilot)
        assert "scan for processes again" in text_of(app)
        await pilot.press("escape")
        await settle(pilot)
        assert "Processes" in text_of(app)


async def test_a_filter_without_a_match_says_how_to_leave_it() -> None:
    app = PickerApp(lambda: [UNPREPARED, STATIC], refuse, "night", steps({}))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("/", "q", "q", "enter")
        await settle(pilot)
        assert "No row here has “qq”; Esc leaves the filter." in text_of(app)
        await pilot.press("escape")
        await settle(pilot)
        assert "No row here" not in text_of(app)
        assert "tool --serve" in text_of(app)
