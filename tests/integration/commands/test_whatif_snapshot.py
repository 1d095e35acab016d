"""`locktop snapshot --whatif` on a real program: predictions in a snapshot and its report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import tool
from support.recordings import end_of, recording
from support.targets import StartTarget

#: Sixteen threads sleep, and a hold is a sleep: the program needs few CPUs. One lock is full.
CROWD = "16:s2000,L40,s1000,U"
LOCK = "lock_rounds.c: mutexes[40]"
TITLE = "WHAT A CHANGE WOULD GAIN, from "


def snapshot(*arguments: str | int) -> dict[str, Any]:
    done = tool.run("snapshot", *arguments)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_snapshot_and_its_report_have_the_predictions(
    start_target: StartTarget, tmp_path: Path
) -> None:
    target = start_target("lock_rounds", CROWD, flags=("-lm",))
    target.expect("ready")
    path = tmp_path / "snapshot.json"
    done = tool.run("snapshot", "-p", target.pid, "-d", "2", "--whatif", "-o", str(path))
    assert done.returncode == 0, done.stderr
    document = json.loads(path.read_bytes())
    found = document["whatif"]
    assert (found["format"], found["pid"]) == ("locktop.whatif", target.pid)
    assert found["pressure"][0]["name"] == LOCK
    assert found["duration_s"] > 1.9
    assert document["level"] == "contended"
    assert document["duration_s"] > found["duration_s"]
    [lock] = [one for one in document["locks"] if one["name"] == LOCK]
    assert lock["interval"]["acquisitions"] > 0
    report = tool.run("snapshot", str(path), "--format", "text").stdout
    assert TITLE in report
    assert f"of records until {found['taken_at']}" in report
    # A busy host may stop the replay from being like the recording. Then there is a refusal.
    if found["refusal"]:
        assert "No prediction (" in report
    for one in found["predictions"]:
        assert one["text"] in report
    assert bool(found["refusal"]) != bool(found["predictions"])
    again = snapshot(str(path))
    assert again["whatif"] == found


def test_a_snapshot_without_the_option_has_no_predictions(start_target: StartTarget) -> None:
    target = start_target("lock_rounds", CROWD, flags=("-lm",))
    target.expect("ready")
    assert snapshot("-p", target.pid)["whatif"] is None
    assert TITLE not in tool.run("snapshot", "-p", target.pid, "--format", "text").stdout


def test_a_snapshot_of_a_recording_has_the_predictions(
    start_target: StartTarget, tmp_path: Path
) -> None:
    target = start_target("lock_rounds", CROWD, level="all", flags=("-lm",))
    target.expect("ready")
    path = tmp_path / "recording"
    with recording(target.pid, path, "-d", "3", "--every", "100ms") as recorder:
        end_of(recorder)
    found = snapshot(str(path), "--whatif")["whatif"]
    assert found["pressure"][0]["name"] == LOCK
    assert found == json.loads(tool.run("whatif", str(path), "--format", "json").stdout)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-d", "1", "--inside"], "--whatif excludes --inside and --session"),
        (["--session"], "--whatif excludes --inside and --session"),
    ],
)
def test_options_that_do_not_fit_are_reported_in_one_line(
    start_target: StartTarget, options: list[str], said: str
) -> None:
    target = start_target("lock_rounds", CROWD, flags=("-lm",))
    target.expect("ready")
    done = tool.run("snapshot", "-p", target.pid, "--whatif", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_saved_snapshot_gets_no_predictions(start_target: StartTarget, tmp_path: Path) -> None:
    target = start_target("lock_rounds", CROWD, flags=("-lm",))
    target.expect("ready")
    path = tmp_path / "snapshot.json"
    assert tool.run("snapshot", "-p", target.pid, "-o", str(path)).returncode == 0
    done = tool.run("snapshot", str(path), "--whatif")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--whatif needs -p PID or a recording" in done.stderr


def test_a_process_without_the_library_is_refused(start_unprepared: StartTarget) -> None:
    target = start_unprepared("lock_rounds", CROWD, flags=("-lm",))
    target.expect("ready")
    done = tool.run("snapshot", "-p", target.pid, "--whatif", "-d", "1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "whatif needs the library" in done.stderr
