"""Real runs of the benchmark program and of `locktop bench`; the tests ignore the times."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from support import tool
from support.targets import Target, remove_file_of, start_time

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.bench import contention, runner, trace_growth
from locktop.collector.extensions.bench.runner import FLAVOURS, UNPREPARED, Case
from locktop.collector.sources import launch

#: The benchmark measures several threads only if there are two CPUs.
THREADS = (1, 2, 8) if len(os.sched_getaffinity(0)) > 1 else (1,)
LOCKTOP = [sys.executable, "-m", "locktop.tui"]


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*LOCKTOP, "bench", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_the_cost_of_calls_has_a_row_for_each_way() -> None:
    found = json.loads(tool.run_alone("bench", "calls", "--quick", "--json").stdout)
    rows = {row["way"]: row for row in found["rows"]}
    assert list(rows) == ["glibc", "empty", "off", "filtered", "counted"]
    assert all(row["ns"]["median"] > 0 for row in rows.values())
    assert rows["counted"]["ns"]["median"] > rows["empty"]["ns"]["median"]
    table = tool.run_alone("bench", "calls", "--quick").stdout
    assert [line.split()[0] for line in table.splitlines()] == ["way", *rows]


def test_the_json_has_each_case_with_its_figures() -> None:
    done = bench("--quick", "--only", "mutex", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert document["rounds"] == 1
    assert document["machine"]["cpus"] >= 1
    assert document["ticks_hz"] > 1e6
    assert [(row["threads"], row["flavour"]) for row in document["costs"]] == [
        (threads, flavour) for threads in THREADS[:2] for flavour in FLAVOURS
    ]
    for row in document["costs"]:
        assert row["primitive"] == "mutex"
        for name in ("ns", "ticks", "ratio"):
            assert 0 < row[name]["low"] <= row[name]["median"] <= row[name]["high"]
        if row["flavour"] == UNPREPARED:
            assert row["ratio"]["median"] == 1
    assert document["trace"] == []
    assert len(document["budgets"]) == 3 + len(THREADS[:2])


@pytest.mark.skipif(len(THREADS) == 1, reason="threads fight only on two CPUs")
def test_the_grid_has_each_point_with_its_figures() -> None:
    beside = f"other={launch.library('nop')}"
    done = bench("--contention", "--quick", "--only", "spin", "--beside", beside, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert len(document["points"]) == len(contention.points(["spin"]))
    for point in document["points"]:
        assert point["rate"] > 0
        assert all(point["kept"][library]["median"] > 0 for library in ("locktop", "other"))


def test_each_level_records_the_known_events_of_a_mix() -> None:
    """The threads of the program shake hands, so the number of each event is known."""
    found = {(one.mix, one.level): one for one in trace_growth.measure(cycles=50)}
    assert len(found) == 6
    for (mix, level), one in found.items():
        assert one.contended == 50
        assert one.acquisitions == 50 * trace_growth.MIXES[mix]
        expected = {"contended": 50, "blocks": 2 * 50, "all": one.acquisitions}
        assert one.records == expected[level], (mix, level)


@pytest.mark.parametrize("flavour", [UNPREPARED, "contended", "all"])
def test_every_case_can_be_measured(flavour: str) -> None:
    cases = runner.cases()
    assert len({case.primitive for case in cases}) > 20
    assert {case.threads for case in cases if case.primitive == "mutex"} == set(THREADS)
    for case in cases:
        figures = runner.cost(case, flavour, 0.001)
        assert figures.ns > 0, case
        assert figures.ticks > 0, case


def test_wrong_use_of_the_program_is_one_line_and_status_2() -> None:
    for arguments in (
        (),
        ("cost", "mutex", "1"),
        ("cost", "mutex", "1", "no"),
        ("cost", "mutex", "2", "1", "9", "x"),
        ("mix", "1", "1"),
    ):
        done = subprocess.run([runner.path(), *arguments], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (2, ""), arguments
        assert done.stderr.startswith("usage: "), arguments
    nothing = Case("pink", "", 1)
    with pytest.raises(LocktopError, match="no pink with 1 threads"):
        runner.cost(nothing, UNPREPARED, 0.001)


def test_nop_interposes_what_the_library_does() -> None:
    """Only then is nop the smallest possible cost of interposing."""
    assert exports(launch.library("nop")) == exports(launch.library())


def exports(library: Path) -> set[str]:
    with library.open("rb") as file:
        section = ELFFile(file).get_section_by_name(".dynsym")
        assert isinstance(section, SymbolTableSection)
        symbols = [symbol for symbol in section.iter_symbols() if symbol.name]
        return {symbol.name for symbol in symbols if symbol["st_shndx"] != "SHN_UNDEF"}


@pytest.mark.parametrize(("primitive", "threads"), [("deep-wait", 2), ("deep-timeout", 1)])
def test_the_stack_of_a_deep_wait_has_all_its_frames(primitive: str, threads: int) -> None:
    if threads not in THREADS:
        pytest.skip("needs two CPUs")
    command = [str(runner.path()), "cost", primitive, str(threads), "600"]
    with Target(command, launch.preload_environment()) as target:
        started = start_time(target.pid)
        document = tool.scan_until(
            target.pid, lambda seen: bool(waits_of_mutexes(seen)), "waits for the mutex"
        )
    remove_file_of(target.pid, started)
    most = max(waits_of_mutexes(document), key=lambda one: int(one["count"]))
    assert len(document["stacks"][str(most["stack"])]) == 13, tool.functions(
        document, most["stack"]
    )


def waits_of_mutexes(document: dict[str, Any]) -> list[dict[str, Any]]:
    mutexes = [lock for lock in document["locks"] if lock["kind"] == "mutex"]
    return [one for lock in mutexes for one in lock["wait_stacks"] if one["count"] > 100]
