"""`locktop profile`: a program with two profiles, and files that are none."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import tool
from support.screen import Screen
from support.targets import Compiler, StartTarget, Target

from locktop.collector.extensions.bench.runner import path as bench_program
from locktop.collector.sources import launch

FUNCTION = "sum_up_to_0x7f"
PASSES = 3000


def branch_demo() -> Path:
    """Return the example of docs/profile.md."""
    return bench_program().with_name("locktop-branch-demo")


@pytest.fixture(scope="module")
def profiled() -> Iterator[tuple[Target, dict[str, Any]]]:
    """Yield the example with both of its profiles made, and the times that it measured itself."""
    environment = launch.preload_environment("contended")
    with Target([branch_demo(), "--wait", str(PASSES)], environment) as target:
        yield target, target.truth()


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one line of a command that could not do its work."""
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("locktop: ")
    return line


def profile(*arguments: str | int | Path) -> subprocess.CompletedProcess[str]:
    """Run ``locktop profile ARGUMENTS``."""
    return tool.run("profile", *map(str, arguments))


def report(*arguments: str | int) -> dict[str, Any]:
    """Return ``locktop profile show --format json``."""
    done = profile("show", "--format", "json", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_totals_are_in_proportion_to_the_times_of_the_program(
    profiled: tuple[Target, dict[str, Any]],
) -> None:
    target, truth = profiled
    assert truth["random"] == truth["sorted"], "the same bytes have the same sum"
    found = report("-p", target.pid, "random", "sorted")
    samples = [one["samples"] + one["elsewhere"] + one["lost"] for one in found["profiles"]]
    interval = found["profiles"][0]["interval"]
    for count, name in zip(samples, ("random", "sorted"), strict=True):
        # Samples come at equal intervals of CPU time; four standard errors allow for lost ones.
        bound = 4 * math.sqrt(count) + 3
        assert count == pytest.approx(truth[f"{name}_ns"] / interval, abs=bound)
    relative = 4 * math.sqrt(sum(1 / max(1, count) for count in samples))
    ratio, expected = samples[1] / samples[0], truth["sorted_ns"] / truth["random_ns"]
    assert ratio == pytest.approx(expected, rel=relative)


def test_the_difference_lies_in_the_loop_with_the_branch(
    profiled: tuple[Target, dict[str, Any]],
) -> None:
    target, _ = profiled
    found = report("-p", target.pid, "random", "sorted")
    instructions = [one for bucket in found["buckets"] for one in bucket["instructions"]]
    jumps = [one for one in instructions if is_jump_back(one)]
    # Some compilers end one way of the branch with a jump of its own.
    assert any(not is_unconditional(one) for one in jumps), "the branch was compiled away"
    begin = min(int(one["text"].rpartition("+")[2], 16) for one in jumps)
    end = max(one["offset"] for one in jumps) + found["profiles"][0]["bucket_size"]
    inside = sum(
        bucket["counts"][0] for bucket in found["buckets"] if begin - 4 <= bucket["offset"] <= end
    )
    assert inside >= 0.95 * found["profiles"][0]["samples"]
    assert {bucket["function"] for bucket in found["buckets"]} == {FUNCTION}
    assert {Path(one["file"]).name for one in jumps} == {"locktop_branch_demo.c"}
    assert all(one["line"] > 0 for one in jumps)


def is_jump_back(instruction: dict[str, Any]) -> bool:
    """Return whether an instruction is a jump to an earlier one."""
    text: str = instruction["text"]
    name, _, target = text.partition(" ")
    at = target.rpartition("+")[2]
    jump = name == "b" or name.startswith(("j", "b.", "tb", "cb"))
    return jump and at.startswith("0x") and int(at, 16) < int(instruction["offset"])


def is_unconditional(instruction: dict[str, Any]) -> bool:
    """Return whether a jump is always taken."""
    return instruction["text"].partition(" ")[0] in ("jmp", "b")


def test_saved_profiles_show_what_the_process_showed(
    profiled: tuple[Target, dict[str, Any]], tmp_path: Path
) -> None:
    target, _ = profiled
    files = [tmp_path / f"{name}.json" for name in ("random", "sorted")]
    for file in files:
        done = profile("save", "-p", target.pid, file.stem, "-o", file)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    before = files[0].read_bytes()
    again = profile("save", "-p", target.pid, "sorted", "-o", files[0])
    assert "exists" in refusal(again)
    assert files[0].read_bytes() == before
    live, saved = report("-p", target.pid, "random", "sorted"), report(*map(str, files))
    assert saved["buckets"] == live["buckets"]
    assert [one["name"] for one in saved["profiles"]] == ["random", "sorted"]
    text = profile("show", *files).stdout
    assert "━" in text
    assert "B : A" in text
    assert "largest difference: sum_up_to_0x7f+" in text
    assert max(map(len, text.splitlines())) <= 100


def test_profiles_of_a_snapshot_have_counts_alone(
    profiled: tuple[Target, dict[str, Any]], tmp_path: Path
) -> None:
    target, _ = profiled
    file = tmp_path / "snapshot.json"
    assert tool.run("snapshot", "-p", target.pid, "-o", str(file)).returncode == 0
    live, saved = report("-p", target.pid, "random"), report(f"{file}:random")
    counts = [
        {at["offset"]: at["counts"] for at in one["buckets"] if any(at["counts"])}
        for one in (live, saved)
    ]
    assert counts[0] == counts[1] != {}
    assert saved["notes"] == ["the code was not kept: instructions are missing"]
    listed = profile("list", file).stdout
    assert listed == profile("list", "-p", target.pid).stdout
    assert [line.split()[1] for line in listed.splitlines()] == ["NAME", "random", "sorted"]
    found = json.loads(profile("list", file, "--format", "json").stdout)
    assert [one["name"] for one in found["profiles"]] == ["random", "sorted"]
    assert f"name a profile, {file}:NAME" in refusal(profile("show", file))


def test_profiles_of_a_recording_have_counts_alone(
    profiled: tuple[Target, dict[str, Any]], tmp_path: Path
) -> None:
    target, _ = profiled
    file = tmp_path / "recorded"
    done = tool.run("record", "-p", target.pid, "-o", str(file), "-d", "1")
    assert done.returncode == 0, done.stderr
    assert report(f"{file}:random")["profiles"][0]["samples"] > 0
    assert profile("list", file).stdout == profile("list", "-p", target.pid).stdout


def test_a_damaged_profile_of_a_snapshot_is_refused(
    profiled: tuple[Target, dict[str, Any]], tmp_path: Path
) -> None:
    target, _ = profiled
    document = tool.snapshot(target.pid)
    document["profiles"][0]["bucket_size"] = 0
    file = tmp_path / "snapshot.json"
    file.write_text(json.dumps(document))
    assert "bucket_size is 0" in refusal(profile("show", f"{file}:random"))


def test_without_capstone_one_line_says_so(
    profiled: tuple[Target, dict[str, Any]], tmp_path: Path
) -> None:
    target, _ = profiled
    (tmp_path / "capstone.py").write_text("raise ImportError('not installed')\n")
    modules = {"PYTHONPATH": str(tmp_path)}
    done = tool.run_alone("profile", "show", "-p", target.pid, "random", environment=modules)
    assert done.returncode == 0
    notes = [line for line in done.stdout.splitlines() if line.startswith("note:")]
    assert notes == ["note: instructions need capstone: pip install 'locktop[disassembly]'"]
    assert "locktop_branch_demo.c:" in done.stdout or "demo.c:" in done.stdout


def test_the_screen_shows_two_profiles_with_their_instructions(
    profiled: tuple[Target, dict[str, Any]],
    need: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target, _ = profiled
    monkeypatch.chdir(tmp_path)
    with Screen(need("tmux"), "-p", target.pid) as screen:
        screen.until(lambda text: "Locks by" in text, "the monitor")
        screen.press("P")
        screen.until(lambda text: "chooses A" in text, "the profiles")
        screen.press("m", "Down", "Enter")
        text = screen.until(lambda text: "INSTRUCTION" in text, "the buckets")
        assert "B : A" in text
        assert "movzx" in text or "ldrb" in text
        screen.press("w")
        screen.until(lambda text: "Saved " in text, "the path")
    (saved,) = tmp_path.glob("locktop-profile-*-sorted.json")
    assert "INSTRUCTION" in profile("show", saved).stdout


def test_the_code_of_an_unloaded_library_is_not_read(
    start_target: StartTarget, compiler: Compiler
) -> None:
    library = compiler.program("profiled_plugin", "-shared", "-fPIC")
    target = start_target("profiled_errors", "unloaded", str(library))
    target.expect("unloaded")
    found = report("-p", target.pid, "1")
    assert found["profiles"][0]["state"] == "unloaded"
    assert any(any(bucket["counts"]) for bucket in found["buckets"])
    assert found["notes"] == ["the code was not kept: instructions are missing"]


def test_profiles_of_different_regions_are_not_compared(start_target: StartTarget) -> None:
    target = start_target("profiled_contrast")
    target.expect("ready")
    refused = profile("show", "-p", target.pid, "one", "other")
    assert "different regions" in refusal(refused)
    assert "buckets of different sizes: 4 and 8 bytes" in refusal(
        profile("show", "-p", target.pid, "one", "coarse")
    )
    assert "several profiles are called" in refusal(profile("show", "-p", target.pid, "twice"))


def test_a_name_that_no_profile_has_is_refused(
    profiled: tuple[Target, dict[str, Any]],
) -> None:
    target, _ = profiled
    line = refusal(profile("show", "-p", target.pid, "neither"))
    assert line.endswith("there is no profile 'neither'; there are random, sorted")
    line = refusal(profile("show", "-p", target.pid, "1", "2", "1"))
    assert "one profile, or two" in line
    assert "needs -o" in refusal(profile("save", "-p", target.pid, "1"))
    assert "one of -p PID and FILE" in refusal(profile("list"))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\0\1\2",
        b'{"format": "locktop.snapshot"}',
        b"random text\n",
        b"[" * 99999,
    ],
)
def test_a_file_that_is_no_profile_is_refused(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_bytes(content)
    assert "is no profile of locktop" in refusal(profile("show", file))


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path, f"{tmp_path}/missing:name"):
        refusal(profile("show", path))
    refusal(profile("list", tmp_path / "missing"))


def test_the_demonstration_prints_the_contrast() -> None:
    done = tool.run_alone("demo", "--profile")
    assert (done.returncode, done.stderr) == (0, "")
    assert "B : A  0." in done.stdout
    assert "CPU time that the program measured: A " in done.stdout
    assert "sum_up_to_0x7f:" in done.stdout


def test_the_bench_prints_the_slow_down_at_each_interval() -> None:
    done = tool.run_alone("bench", "profile", "--quick", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)["rows"]
    of_timer = [row["interval_ns"] for row in rows if row["source"] == "timer"]
    assert len(of_timer) == 5
    assert all(one == 2 * half for one, half in itertools.pairwise(of_timer))
    assert all(-1 < row["slow_down"]["low"] <= row["slow_down"]["high"] for row in rows)
