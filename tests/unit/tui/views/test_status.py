"""The line of the process, and the flag that tells in a word what is wrong."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from unit.builders import scenarios

from locktop.collector.model import Pattern, PatternName, Snapshot
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views.status import Pace, state_flags, status_line, verdict_flag
from locktop.tui.views.styled_line import line_text
from locktop.tui.widgets.status_row import status_row


def test_the_status_line_keeps_a_gap_and_drops_what_says_least() -> None:
    snapshot = replace(scenarios.normal(), host="vm2", notes=("one",), patterns=())
    whole = line_text(status_line(snapshot, Pace(2.0, 2.0), 300)).replace(",", "").split()
    before: set[str] = set()
    for width in range(20, 160):
        text = line_text(status_line(snapshot, Pace(2.0, 2.0), width, alerts=3))
        assert cell_len(text) == width
        words = set(text.replace(",", "").split())
        assert words <= {*whole, "3", "alerts", "{)"}
        assert before <= words, "a wider line has all of a narrower one"
        before = words


def test_a_narrow_line_beside_a_verdict_keeps_the_process_its_threads_and_the_level() -> None:
    flags = state_flags(SnapshotIndex(scenarios.deadlock()), paused=True, position=None)
    process = replace(scenarios.normal().process, comm="locktop-demo", pid=32235)
    calm = replace(scenarios.normal(), process=process, level="contended", notes=("one",))
    room = 79 - cell_len(line_text(flags))
    assert room < 60
    left = status_line(calm, Pace(2.0, 2.0), room, alerts=2)
    text = line_text(status_row(left, flags, 80))
    assert cell_len(text) == 80
    assert text.startswith(" locktop-demo 32235  9 threads")
    assert "  records waits (key L)" in text
    assert text.endswith("  DEADLOCK   PAUSED  ")


def test_the_screen_on_a_core_claims_no_updates() -> None:
    core = replace(scenarios.normal(), source="core")
    assert "update" not in line_text(status_line(core, Pace(2.0, 2.0), 300))


def test_status_line_counts_threads_in_words() -> None:
    whole = scenarios.normal()
    one = replace(whole, threads=whole.threads[:1])
    assert "  1 thread  " in line_text(status_line(one, Pace(2.0, 2.0), 120))
    assert f"  {len(whole.threads)} threads" in line_text(status_line(whole, Pace(2.0, 2.0), 120))


def test_a_narrow_status_line_keeps_the_level() -> None:
    process = replace(scenarios.normal().process, comm="locktop-demo", pid=32235)
    calm = replace(scenarios.normal(), process=process, level="contended", lost_events=4117)
    for snapshot, pace in (
        (calm, Pace(2.0, 1.0)),
        (replace(calm, notes=("one",)), Pace(2.0, 2.0)),
    ):
        assert "  records waits (key L) " in line_text(status_line(snapshot, pace, 80))


def test_the_status_line_says_how_many_names_are_left() -> None:
    def flags(left: int) -> str:
        snapshot = replace(scenarios.normal(), names_left=left)
        return line_text(status_line(snapshot, Pace(2.0, 2.0), 160))

    assert "names" not in flags(0)
    assert flags(1214).endswith("  names: 1,214 left  2 updates/s ")


def test_without_a_process_nothing_is_said_of_it() -> None:
    """A listener waits for its first snapshot."""
    process = replace(scenarios.normal().process, comm="no process yet", pid=0)
    nothing = replace(scenarios.normal(), process=process, threads=(), locks=())
    text = line_text(status_line(nothing, Pace(2.0, 2.0), 120))
    assert text.split() == ["no", "process", "yet", "2", "updates/s"]


def flag(snapshot: Snapshot, *patterns: PatternName) -> str:
    found = tuple(Pattern(name, 1, (4712,), "", "") for name in patterns)
    return verdict_flag(SnapshotIndex(replace(snapshot, patterns=found)))


@pytest.mark.parametrize(
    ("patterns", "word"),
    [
        ((), ""),
        ((PatternName.HIGH_RATE,), ""),
        ((PatternName.OVERSUBSCRIBED, PatternName.LONG_HOLD), ""),
        ((PatternName.NO_SIGNAL,), "NO SIGNAL"),
        ((PatternName.SERIALISED, PatternName.NO_SIGNAL), "SERIALISED"),
        ((PatternName.SERIALISED, PatternName.CONVOY), "CONVOY"),
        ((PatternName.CONVOY, PatternName.STARVED_WRITER), "STARVED"),
        ((PatternName.CONVOY, PatternName.CPU_STARVED), "CPU-STARVED"),
    ],
)
def test_the_worst_pattern_is_the_flag(patterns: tuple[PatternName, ...], word: str) -> None:
    assert flag(scenarios.normal(), *patterns) == word


def test_a_deadlock_comes_before_all() -> None:
    deadlocked = replace(scenarios.deadlock(), stopped=True)
    assert flag(deadlocked, PatternName.CONVOY) == "DEADLOCK"
    possible = tuple(replace(one, certain=False) for one in deadlocked.deadlocks)
    assert flag(replace(deadlocked, deadlocks=possible)) == "DEADLOCK?"


def test_a_stopped_process_comes_before_patterns() -> None:
    stopped = replace(scenarios.normal(), stopped=True)
    assert flag(stopped, PatternName.STARVED_WRITER) == "STOPPED"
