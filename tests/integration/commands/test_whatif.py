"""`locktop whatif` on a real program: the change it predicts is really made, too."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support import tool
from support.eventually import until
from support.pty_tool import PtyTool
from support.recordings import end_of, recording
from support.targets import StartTarget, Target
from support.whatif import answer, ratio_of_rounds

#: Sixteen threads sleep, and a hold is a sleep: the program needs few CPUs. One lock is full.
CROWD, SPLIT = "16:s2000,L40,s1000,U", "16:s2000,L40-43,s1000,U"


def level(target: Target) -> str:
    said = tool.run("ctl", "-p", target.pid).stdout
    found = re.search(r": (\w+)$", said.strip())
    assert found is not None, said
    return found[1]


def test_a_prediction_is_like_the_change_really_made(start_target: StartTarget) -> None:
    target = start_target("lock_rounds", CROWD, flags=("-lm",))
    other = start_target("lock_rounds", SPLIT, flags=("-lm",))
    target.expect("ready")
    other.expect("ready")
    document = answer("-p", target.pid, "-d", "2", "--split", "mutexes[40]=4")
    truth = ratio_of_rounds(other, target)
    [found] = document["predictions"]
    assert found["kind"] == "split"
    assert truth / 1.5 < found["ratio"] < truth * 1.5
    assert found["low"] <= found["ratio"] <= found["high"]
    assert found["ratio"] <= found["bound"]
    assert level(target) == "contended"


def test_without_a_change_the_likely_ones_are_ranked(start_target: StartTarget) -> None:
    target = start_target("lock_rounds", CROWD, flags=("-lm",))
    target.expect("ready")
    document = answer("-p", target.pid, "-d", "2")
    ratios = {one["text"]: one["ratio"] for one in document["predictions"]}
    assert list(ratios.values()) == sorted(ratios.values(), reverse=True)
    lock = "lock_rounds.c: mutexes[40]"
    assert ratios[f"{lock}: split by 8"] > ratios[f"{lock}: hold half as long"] > 1.3
    assert document["pressure"][0]["name"] == lock
    assert document["pressure"][0]["wait_share"] > 0.4
    assert document["recording_cost"] > 0.5


def test_text_says_what_was_counted(start_target: StartTarget) -> None:
    target = start_target("lock_rounds", CROWD, flags=("-lm",))
    target.expect("ready")
    done = tool.run("whatif", "-p", target.pid, "-d", "1", "--throughput", "mutexes[40]")
    assert done.returncode in (0, 3), done.stderr
    assert "acquisitions a second of lock_rounds.c: mutexes[40]" in done.stdout
    assert ("o prediction (" in done.stdout) == (done.returncode == 3)


def test_a_killed_command_leaves_the_level_as_it_was(start_target: StartTarget) -> None:
    target = start_target("lock_rounds", CROWD, flags=("-lm",))
    target.expect("ready")
    process = tool.start("whatif", "-p", target.pid, "-d", "600")
    until(lambda: level(target) == "all", "the command records all")
    process.kill()
    process.communicate()
    until(lambda: level(target) == "contended", "the level is back")


def test_a_recording_at_the_level_all_is_replayed(
    start_target: StartTarget, tmp_path: Path
) -> None:
    target = start_target("lock_rounds", CROWD, level="all", flags=("-lm",))
    target.expect("ready")
    path = tmp_path / "recording"
    with recording(target.pid, path, "-d", "3", "--every", "100ms") as recorder:
        end_of(recorder)
    done = tool.run("whatif", str(path), "--hold", "mutexes[40]=0.5x", "--format", "json")
    assert done.returncode in (0, 3), done.stderr
    document = json.loads(done.stdout)
    assert document["throughput"]["per_s"] > 0
    for one in document["predictions"]:
        assert one["ratio"] > 1.2


def test_a_recording_of_another_level_is_refused(start_target: StartTarget, tmp_path: Path) -> None:
    target = start_target("lock_rounds", CROWD, flags=("-lm",))
    target.expect("ready")
    path = tmp_path / "recording"
    with recording(target.pid, path, "-d", "1") as recorder:
        end_of(recorder)
    done = tool.run("whatif", str(path))
    assert done.returncode == 2
    assert "level contended; whatif needs one with the level all" in done.stderr


def test_wrong_use_is_reported_in_one_line(start_target: StartTarget) -> None:
    target = start_target("lock_rounds", CROWD, flags=("-lm",))
    target.expect("ready")
    for options, said in (
        (["--hold", "mutexes[40]"], "--hold mutexes[40]: the form is --hold LOCK=0.5x"),
        (["--hold", "mutexes[40]=fast"], "'fast' is no factor such as 0.5x"),
        (["--split", "mutexes[40]=0"], "'0' is no number from 1 to 99999"),
        (["--split", "g_other=2"], "there is no lock 'g_other'"),
        (["--rw", "mutexes[40]=2"], "'2' is no share of readers from 0 to 1"),
        (["--threads", "crew=2"], "there is no group of threads 'crew'; groups: group"),
        (["--throughput", "g_other"], "there is no lock 'g_other'"),
        (["--from", "-1s"], "--at, --from and --to need a recording"),
    ):
        done = tool.run("whatif", "-p", target.pid, *options)
        assert (done.returncode, done.stdout) == (2, ""), options
        assert said in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_semaphore_of_one_unit_is_a_lock(start_target: StartTarget) -> None:
    target = start_target("lock_rounds", "8:s2000,S1/1,s1000,V1", flags=("-lm",))
    target.expect("ready")
    document = answer("-p", target.pid, "-d", "2", "--hold", "semaphores[1]=0.5x")
    [found] = document["predictions"]
    assert found["ratio"] > 1.3
    assert document["pressure"][0]["name"] == "lock_rounds.c: semaphores[1]"


def test_a_semaphore_that_counts_units_has_no_hold(start_target: StartTarget) -> None:
    target = start_target("lock_rounds", "8:s2000,S1/3,s1000,V1", flags=("-lm",))
    target.expect("ready")
    done = tool.run("whatif", "-p", target.pid, "-d", "1", "--hold", "semaphores[1]=0.5x")
    assert (done.returncode, done.stdout) == (2, "")
    assert "semaphores[1] counts units: threads do not hold it" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_terminal_shows_what_goes_on(start_target: StartTarget) -> None:
    target = start_target("lock_rounds", CROWD, flags=("-lm",))
    target.expect("ready")
    command = [str(tool.COMMAND), "whatif", "-p", str(target.pid), "-d", "2"]
    with PtyTool(command) as terminal:
        terminal.shows("recording ")
        assert "Ctrl+C ends this" not in terminal.shows("critical path")


@pytest.mark.parametrize("command", [["whatif"], ["snapshot", "--whatif"]])
def test_a_terminal_counts_the_seconds_down(start_target: StartTarget, command: list[str]) -> None:
    target = start_target("lock_rounds", CROWD, flags=("-lm",))
    target.expect("ready")
    options = ["-p", str(target.pid), "-d", "600"]
    with PtyTool([str(tool.COMMAND), *command, *options]) as terminal:
        terminal.shows("recording ")
        is_later = re.compile(r"\b5\d\d s left.*; Ctrl\+C ends this")
        terminal.until(lambda text: is_later.search(text) is not None, "fewer seconds")


def test_a_snapshot_with_predictions_shows_what_goes_on(start_target: StartTarget) -> None:
    target = start_target("lock_rounds", CROWD, flags=("-lm",))
    target.expect("ready")
    options = ["-p", str(target.pid), "--whatif", "-d", "1"]
    with PtyTool([str(tool.COMMAND), "snapshot", *options]) as terminal:
        assert terminal.comes(lambda _: b"recording " in terminal.since(0))
        assert terminal.comes(lambda _: b"replaying " in terminal.since(0))


def test_a_process_without_the_library_is_refused(start_unprepared: StartTarget) -> None:
    target = start_unprepared("lock_rounds", CROWD, flags=("-lm",))
    target.expect("ready")
    done = tool.run("whatif", "-p", target.pid)
    assert done.returncode == 2
    assert "whatif needs the library" in done.stderr
