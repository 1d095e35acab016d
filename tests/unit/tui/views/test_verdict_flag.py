"""The flag that tells in a word what is wrong."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import scenarios

from locktop.collector.model import Pattern, PatternName, Snapshot
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.tui.views.verdict_flag import verdict_flag


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
