"""Profiles that a program makes of its own code, compared with what the program says of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import tool
from support.targets import Compiler, StartTarget

TIMER, TASK_CLOCK, CONTEXT_SWITCHES, PAGE_FAULTS, CYCLES = range(5)
HARDWARE = range(CYCLES, 9)
NOT_ON_THIS_MACHINE, NOT_PERMITTED = -13, -14


def truth_of(target: Any) -> dict[str, Any]:
    """Return what the program says; skip the test if the kernel does not let it use the source."""
    truth: dict[str, Any] = target.truth()
    if truth.get("code") == NOT_PERMITTED:
        pytest.skip(truth["error"])
    return truth


@pytest.mark.parametrize(("source", "interval"), [(TIMER, 4_000_000), (TASK_CLOCK, 0)])
def test_a_known_split_of_the_time_comes_out(
    source: int, interval: int, start_target: StartTarget
) -> None:
    target = start_target("profiled_split", str(source), str(interval))
    truth = truth_of(target)
    assert truth["buckets"] == truth["expected_buckets"]
    in_both = truth["first"] + truth["second"]
    assert in_both == truth["samples"]
    # 500 samples of the timer: five standard errors of a share of three quarters.
    expected = truth["first_ns"] / (truth["first_ns"] + truth["second_ns"])
    assert truth["first"] / in_both == pytest.approx(expected, abs=0.1)
    everywhere = in_both + truth["elsewhere"] + truth["lost"]
    assert everywhere * truth["interval"] == pytest.approx(truth["cpu_ns"], rel=0.25)
    assert truth["ran_ns"] >= truth["cpu_ns"]


@pytest.mark.parametrize("pieces", ["threads", "starts"])
def test_work_in_pieces_shorter_than_an_interval_is_sampled(
    pieces: str, start_target: StartTarget
) -> None:
    truth = start_target("profiled_pieces", pieces).truth()
    sampled_ns = truth["samples"] * truth["interval"]
    assert sampled_ns == pytest.approx(truth["cpu_ns"], rel=0.5)


@pytest.mark.parametrize("level", ["dormant", "contended"])
def test_the_tool_shows_the_profiles_of_a_program(level: str, start_target: StartTarget) -> None:
    target = start_target("profiled_split", str(TIMER), "0", "5", level=level)
    truth = target.truth()
    (profile,) = tool.snapshot(target.pid)["profiles"]
    assert (profile["name"], profile["source"], profile["unit"]) == ("split", "timer", "ns")
    assert (profile["state"], profile["bucket_size"]) == ("stopped", 4)
    first, second = profile["regions"]
    assert [first["function"], second["function"]] == ["first_work", "second_work"]
    assert Path(first["module"]).name == "profiled_split"
    assert {key: profile[key] for key in ("interval", "samples", "elsewhere", "lost")} == {
        key: truth[key] for key in ("interval", "samples", "elsewhere", "lost")
    }
    start, end = (int(first["start"], 16), int(first["start"], 16) + first["size"])
    in_first = [one for one in profile["buckets"] if start <= int(one["address"], 16) < end]
    assert sum(bucket["count"] for bucket in in_first) == truth["first"]
    assert sum(bucket["count"] for bucket in profile["buckets"]) == truth["samples"]
    assert profile["ran_s"] == pytest.approx(truth["ran_ns"] / 1e9, rel=0.05)


def test_page_faults_count_where_they_happen(start_target: StartTarget) -> None:
    truth = truth_of(start_target("profiled_split", str(PAGE_FAULTS), "0", "1"))
    assert truth["elsewhere"] >= 100, "a hundred pages outside the two functions"
    assert truth["samples"] < 20


def test_context_switches_are_counted(start_target: StartTarget) -> None:
    truth = truth_of(start_target("profiled_split", str(CONTEXT_SWITCHES), "0", "1"))
    assert truth["code"] == 0
    assert truth["samples"] + truth["elsewhere"] >= 0


@pytest.mark.parametrize("source", HARDWARE)
def test_a_hardware_source_counts_or_is_not_on_this_machine(
    source: int, start_target: StartTarget
) -> None:
    truth = truth_of(start_target("profiled_split", str(source), "0", "5"))
    if truth["code"] == NOT_ON_THIS_MACHINE:
        assert truth["error"] == "source: not on this machine"
    elif source in (CYCLES, CYCLES + 1):
        assert truth["first"] > truth["second"] > 0


@pytest.mark.parametrize("level", ["dormant", "contended"])
@pytest.mark.parametrize("source", [TIMER, TASK_CLOCK])
def test_a_profile_is_of_one_thread_or_of_all(
    source: int, level: str, start_target: StartTarget
) -> None:
    target = start_target("profiled_threads", "threads", str(source), level=level)
    truth = truth_of(target)
    every, own = truth["all"], truth["own"]
    assert own["thread"] == 0
    assert own["main"] > 0
    # Two threads work as long as the main thread, and forty short ones twice as long.
    assert every["thread"] > 1.5 * every["main"] > 0
    assert every["main"] == pytest.approx(own["main"], rel=0.4, abs=6)
    assert (own["threads"], every["threads"], every["left_out"]) == (1, 1, 0)
    profiles = tool.snapshot(target.pid)["profiles"]
    assert [(one["name"], one["all_threads"], one["state"]) for one in profiles] == [
        ("all threads", True, "running"), ("this", False, "running"),
    ]  # fmt: skip
    target.go_on()
    assert target.finish() == (0, ["ok"])


@pytest.mark.parametrize(
    "part",
    [("masked",), ("fork", str(TIMER)), ("fork", str(TASK_CLOCK)), ("exec",)],
    ids=lambda part: "-".join(part),
)
def test_threads_that_block_signals_children_and_executed_programs(
    part: tuple[str, ...], start_target: StartTarget
) -> None:
    target = start_target("profiled_threads", *part)
    status, lines = target.finish()
    if f'"code": {NOT_PERMITTED}' in lines[0]:
        pytest.skip(lines[0])
    assert (status, lines) == (0, ["ok"])


def test_the_programs_own_sigprof_and_handlers_go_on(start_target: StartTarget) -> None:
    alone, profiled = (
        start_target("profiled_signals", how).truth() for how in ("alone", "profiled")
    )
    assert profiled["samples"] > 0
    for truth in (alone, profiled):
        assert truth["failures"] == 0
        assert truth["prof_is_ours"] == 1
        assert truth["interruptions"] > 0
        # Its timer counts whole ticks of the kernel, and a pending signal takes the next along.
        assert 0 < truth["profs"] <= truth["cpu_ns"] / 20e6 * 1.5 + 5
    assert profiled["profs"] > alone["profs"] / 3


@pytest.mark.parametrize("level", ["dormant", "contended"])
def test_threads_may_use_profiles_at_the_same_time(level: str, start_target: StartTarget) -> None:
    assert start_target("profiled_storm", level=level).finish() == (0, ["ok"])


def test_wrong_arguments_have_codes_and_a_line_that_names_them(start_target: StartTarget) -> None:
    assert start_target("profiled_errors").finish() == (0, ["ok"])


def test_a_signal_that_the_program_takes_over_stops_the_profile(start_target: StartTarget) -> None:
    assert start_target("profiled_errors", "taken").finish() == (0, ["ok"])


@pytest.mark.parametrize("level", ["dormant", "contended"])
def test_dlclose_stops_the_profile_of_its_code(
    level: str, start_target: StartTarget, compiler: Compiler
) -> None:
    library = compiler.program("profiled_plugin", "-shared", "-fPIC")
    target = start_target("profiled_errors", "unloaded", str(library), level=level)
    target.expect("unloaded")
    states = [one["state"] for one in tool.snapshot(target.pid)["profiles"]]
    assert states == ["unloaded", "stopped"]
    target.go_on()
    assert target.finish() == (0, ["ok"])
