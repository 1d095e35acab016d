"""Lines that several details share: stacks."""

from __future__ import annotations

from msgspec.structs import replace
from unit.builders import records, scenarios

from locktop.collector.model import Frame
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views.detail_parts import stack_of
from locktop.tui.views.styled_line import line_text, unfolded


def libc(function: str) -> Frame:
    return Frame(0x7F0000001000, function, None, None, "libc.so.6", 0x89000)


def stack(*frames: Frame, whole: bool = False) -> list[str]:
    index = SnapshotIndex(replace(scenarios.normal(), stacks={1: frames}))
    lines = stack_of(index, 1, 0)
    return [line_text(line).split()[1] for line in (unfolded(lines) if whole else lines)]


OWN = records.frame("cache_get", "cache.c", 42), records.frame("main", "main.c", 9)


def test_frames_of_the_standard_library_in_a_row_are_one_line() -> None:
    frames = (libc("__lll_lock_wait"), libc("pthread_mutex_lock"), *OWN, libc("start_thread"))
    assert stack(*frames) == ["2", "cache_get", "main", "start_thread"]
    index = SnapshotIndex(replace(scenarios.normal(), stacks={1: frames}))
    first = next(iter(stack_of(index, 1, 0)))
    assert line_text(first) == "      … 2 frames of the standard library"


def test_frames_of_the_interpreter_in_a_row_are_one_line() -> None:
    python = Frame(0x550000001000, "_PyEval_EvalFrameDefault", None, None, "python3.11", 0x1000)
    frames = (OWN[0], python, replace(python, function=""), libc("start_thread"))
    assert stack(*frames) == ["cache_get", "2", "start_thread"]
    index = SnapshotIndex(replace(scenarios.normal(), stacks={1: frames}))
    lines = [line_text(line) for line in stack_of(index, 1, 0)]
    assert lines[1] == "      … 2 frames of Python's interpreter"


def test_the_whole_screen_has_each_frame_with_its_number() -> None:
    frames = (OWN[0], libc("start_thread"), libc("clone3"))
    assert stack(*frames) == ["cache_get", "2"]
    assert stack(*frames, whole=True) == ["cache_get", "start_thread", "clone3"]


def test_a_stack_of_the_standard_library_alone_is_not_folded() -> None:
    assert stack(libc("poll"), libc("start_thread"), libc("clone3")) == [
        "poll", "start_thread", "clone3",
    ]  # fmt: skip
