"""The command of an alert, and the snapshots that alerts leave."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.eventually import until
from unit.builders import scenarios

from locktop.collector.analysis.alerts import AlertKind
from locktop.collector.extensions.watch.alert_command import AlertCommand
from locktop.collector.extensions.watch.alert_snapshots import AlertSnapshots


def ended(command: AlertCommand) -> str:
    """Wait for the end of a command; return its message."""
    said: list[str] = []

    def over() -> bool:
        said.append(command.poll())
        return not command.running

    until(over, "the command's end")
    return said[-1]


def is_gone(pid: int) -> bool:
    """Whether a process has ended; its parent may reap the process later."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"


def test_a_command_has_the_line_and_the_variables(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = AlertCommand(f'{{ cat; printf %s "$LOCKTOP_LOCK"; }} > {out}', 60.0)
    hostile = '$(touch pwned) `id` "; x'
    assert command.start({"LOCKTOP_LOCK": hostile}, f"a line {hostile}") == ""
    assert command.running
    assert ended(command) == ""
    assert out.read_text() == f"a line {hostile}\n{hostile}"


def test_a_command_need_not_read_its_input_and_a_failure_is_logged() -> None:
    command = AlertCommand("exec <&-; exit 3", 60.0)
    assert command.start({}, "x" * 1000) == ""
    assert ended(command) == "the command ended with status 3"
    assert command.start({}, "again") == "", "the command may be started again"
    ended(command)


def pids_in(file: Path, count: int) -> list[int]:
    until(lambda: file.exists() and file.read_text().count("\n") == count, "its processes")
    return [int(line) for line in file.read_text().split()]


def test_a_running_command_is_not_started_again_and_ends_with_its_children(
    tmp_path: Path,
) -> None:
    pids = tmp_path / "pids"
    command = AlertCommand(f"sleep 1000 & echo $! >> {pids}; echo $$ >> {pids}; wait", 1000.0)
    assert command.start({}, "first") == ""
    running = pids_in(pids, 2)
    assert "still runs" in command.start({}, "second")
    assert command.poll() == ""
    command.stop()
    assert not command.running
    until(lambda: all(map(is_gone, running)), "the end of both")
    assert pids_in(pids, 2) == running
    command.stop()  # nothing to stop


def test_a_command_that_ignores_sigterm_is_killed_after_its_limit(
    tmp_path: Path,
) -> None:
    pids = tmp_path / "pids"
    line = (
        f"trap '' TERM; sleep 1000 & echo $! >> {pids}; echo $$ >> {pids}; while :; do wait; done"
    )
    command = AlertCommand(line, 0.05, grace_s=0.1)
    command.start({}, "")
    running = pids_in(pids, 2)
    assert ended(command) == "the command had not ended after 0.05 s and was killed"
    until(lambda: all(map(is_gone, running)), "the end of both")


def test_background_processes_end_with_the_command(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    command = AlertCommand(f"sleep 1000 & echo $! >> {pids}", 1000.0)
    command.start({}, "")
    left = pids_in(pids, 1)
    assert ended(command) == ""
    until(lambda: all(map(is_gone, left)), "the end of what it left")


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_the_newest_snapshots_stay_and_other_files_are_untouched(tmp_path: Path) -> None:
    shot = scenarios.deadlock()
    others = {
        "locktop-store-4711-20261121T031245Z.json",  # saved from the screen
        "locktop-store-4711-20261121T031245Z-deadlock.json.txt",
        "notes",
    }
    for name in others:
        (tmp_path / name).write_text("mine")
    link = tmp_path / "locktop-store-4711-20261121T000000Z-wait.json"
    link.symlink_to("notes")
    saved = []
    for number in range(5):
        path = AlertSnapshots(tmp_path, 3).save(shot, AlertKind.DEADLOCK)
        os.utime(path, ns=(number, number))  # each file is older than the next file
        saved.append(path)
        assert path.exists()
    assert len({*saved[2:]}) == 3, "no file is overwritten"
    kept = names(tmp_path) - others - {link.name}
    assert kept == {path.name for path in saved[2:]}
    assert {(tmp_path / name).read_text() for name in others} == {"mine"}
    assert link.is_symlink()
    assert os.stat(saved[-1]).st_mode & 0o777 == 0o600


@pytest.mark.parametrize("count", [3])
def test_snapshots_of_earlier_runs_count(count: int, tmp_path: Path) -> None:
    for number in range(count):
        old = tmp_path / f"locktop-a-{number}-20261121T000000Z-wait.json"
        old.write_text("old")
        os.utime(old, ns=(number, number))
    path = AlertSnapshots(tmp_path, 2).save(scenarios.normal(), AlertKind.WAIT)
    assert names(tmp_path) == {path.name, f"locktop-a-{count - 1}-20261121T000000Z-wait.json"}
