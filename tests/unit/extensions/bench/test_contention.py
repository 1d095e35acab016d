"""The grid of fights for a lock, from figures made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.bench import contention, contention_tables, runner
from locktop.collector.extensions.bench.contention import (
    INSIDE_NS,
    THREADS,
    TIMES_WITHOUT,
    Grid,
    Point,
)
from locktop.collector.extensions.bench.costs import Spread
from locktop.collector.extensions.bench.machine_info import MachineInfo
from locktop.collector.extensions.bench.runner import UNPREPARED, Case, RunFigures, Way, Work

HERE = MachineInfo("Some CPU", 2, "Linux 6.1 x86_64", "glibc 2.36", 0.5)
POINT = Point("mutex", 2, 10, 3)


def a_grid(*ratios: float, rounds: int = 3) -> Grid:
    """A grid of one line, with these rates in rates of the unprepared run."""
    rows = [
        contention.summary(
            Point("mutex", 2, 10, times_without),
            {UNPREPARED: [50.0] * rounds, "locktop": [50.0 / ratio] * rounds},
        )
        for times_without, ratio in zip(TIMES_WITHOUT, ratios, strict=False)
    ]
    return Grid(HERE, tuple(rows), rounds, ("locktop",))


def test_the_grid_has_each_point_once() -> None:
    assert len(set(contention.points())) == 4 * len(THREADS) * len(INSIDE_NS) * len(TIMES_WITHOUT)
    spin = contention.points(["spin"])
    assert {point.kind for point in spin} == {"spin"}
    assert len(spin) == len(contention.points()) / 4
    with pytest.raises(LocktopError, match="no 'pink'; it has mutex, recursive, write, spin"):
        contention.points(["mutex", "pink"])


def test_what_is_kept_is_taken_within_a_round() -> None:
    """A machine that is ten times slower in one round changes the rate, not what is kept."""
    row = contention.summary(
        POINT, {UNPREPARED: [50, 500, 50], "locktop": [100, 1000, 100], "old": [25, 250, 50]}
    )
    assert row.kept == {"locktop": Spread(0.5, 0.5, 0.5), "old": Spread(1.5, 2.0, 2.0)}
    assert row.rate == 2e7


def test_a_round_runs_every_library_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[tuple[Case, Way, Work | None]] = []

    def run(case: Case, way: Way, seconds: float, work: Work | None = None) -> RunFigures:
        assert seconds == 0.5
        runs.append((case, way, work))
        return RunFigures(10, 10, 1, 1)

    monkeypatch.setattr(runner, "run", run)
    monkeypatch.setattr(runner, "step_ns", lambda: 2.0)
    monkeypatch.setattr(contention, "this_machine", lambda: HERE)
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    chosen = [POINT, Point("spin", 8, 100, 10)]
    progress: list[tuple[int, int]] = []
    grid = contention.measure(
        chosen, 2, 0.5, [("old", Path("/x/old.so"))], lambda *one: progress.append(one)
    )
    assert grid.libraries == ("locktop", "old", "mutrace")
    assert [row.kept.keys() for row in grid.rows] == [
        {"locktop", "old", "mutrace"},
        {"locktop", "old"},  # mutrace knows no spin locks
    ]
    assert [work for _, _, work in runs] == ([Work(5, 15)] * 4 + [Work(50, 500)] * 3) * 2
    preloads = [way.environment.get("LD_PRELOAD", "") for _, way, _ in runs[:4]]
    assert sum("liblocktop.so" in one for one in preloads) == 1
    assert sum("/x/old.so" in one for one in preloads) == 1
    assert sorted(way.prefix for _, way, _ in runs[:4]) == [(), (), (), ("/bin/mutrace",)]
    assert runs[0][1] != runs[7][1], "another library begins in each round"
    assert progress == [(done, 14) for done in range(1, 15)]


def test_one_cpu_has_no_fight(monkeypatch: pytest.MonkeyPatch) -> None:
    one = MachineInfo("Some CPU", 1, "Linux", "glibc", 0.5)
    monkeypatch.setattr(contention, "this_machine", lambda: one)
    with pytest.raises(LocktopError, match="two CPUs"):
        contention.measure([POINT], 1, 0.1)


def test_the_outcome_names_the_worst_point() -> None:
    grid = a_grid(1.0, 0.9, 0.4, 0.95)
    assert [row.point.times_without for row in contention.missed_points(grid)] == [3, 1]
    said = contention_tables.text(grid)
    assert "2 of 4 points keep at least 0.95. The least is 0.40: mutex, 2 threads" in said
    assert "10 ns inside and 3 times without" in said
    assert contention_tables.text(a_grid(1, 1, 1, 1)).endswith("4 of 4 points keep at least 0.95.")


def test_a_line_has_a_cell_for_each_time_without_the_lock() -> None:
    grid = a_grid(1.0, 0.9, 0.4, 0.95)
    line = next(one for one in contention_tables.markdown(grid).splitlines() if "locktop" in one)
    assert line == (
        "| mutex | 2 | 10 ns | locktop | 1.00 (1.00-1.00) | 0.90 (0.90-0.90) |"
        " 0.40 (0.40-0.40) | 0.95 (0.95-0.95) |"
    )
    assert "(" not in contention_tables.text(a_grid(1, 1, 1, 1, rounds=1)).splitlines()[-3]


def test_json_holds_every_figure() -> None:
    document = contention.json_object(a_grid(1.0, 0.5))
    assert (document["rounds"], document["budget"], document["missed"]) == (3, 0.95, 1)
    assert document["points"][1] == {
        "kind": "mutex",
        "threads": 2,
        "inside_ns": 10,
        "times_without": 1,
        "rate": 2e7,
        "kept": {"locktop": {"low": 0.5, "median": 0.5, "high": 0.5}},
    }
