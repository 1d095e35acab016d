"""Lists as plain lines, and lines for a screen reader, of real processes."""

from __future__ import annotations

import json
import shlex
import signal
from pathlib import Path

import pytest
from support import tool
from support.targets import StartTarget, Target


def deadlocked(start_target: StartTarget) -> int:
    target = start_target("ring_of_three")
    target.go_on()
    tool.scan_until(target.pid, lambda document: bool(document["deadlocks"]), "a deadlock")
    return target.pid


def test_each_scan_is_a_part_of_plain_lines(start_target: StartTarget) -> None:
    pid = deadlocked(start_target)
    done = tool.run("top", "-p", pid, "--batch", "-n", 2, "-d", "0.1")
    assert done.returncode == 0, done.stderr
    first, second, end = done.stdout.split("\n\n")
    assert end == ""
    assert "\x1b" not in done.stdout
    for part in (first, second):
        process, banner, *lines = part.splitlines()
        assert f" {pid} " in process
        assert "DEADLOCK" in banner
        heading = next(at for at, line in enumerate(lines) if line.startswith(" LOCK"))
        assert [line[0] for line in lines[heading + 1 :][:3]] == ["!"] * 3


@pytest.mark.parametrize("arguments", [("top", "--batch"), ("--accessible",)], ids=str)
def test_sigusr2_saves_a_snapshot(
    arguments: tuple[str, ...],
    start_target: StartTarget,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    pid = deadlocked(start_target)
    command = shlex.join([tool.COMMAND, *arguments, "-p", str(pid), "--interval", "0.2"])
    with Target(["sh", "-c", f"exec {command} 2>&1 < /dev/null"]) as plain:
        assert plain.line()  # the first scan
        while "DEADLOCK" not in (line := plain.line()) and "Deadlock: certain" not in line:
            pass
        plain.process.send_signal(signal.SIGUSR2)
        while "snapshot /" not in (line := plain.line()):
            assert line or plain.process.poll() is None
        path = Path(line.partition("snapshot ")[2])
        assert json.loads(path.read_text())["process"]["pid"] == pid


def test_the_lines_are_as_wide_as_the_variable_says(start_target: StartTarget) -> None:
    pid = deadlocked(start_target)
    for columns in (80, 200):
        done = tool.run("top", "-p", pid, "-b", "-n", 1, environment={"COLUMNS": str(columns)})
        heading = next(line for line in done.stdout.splitlines() if line.startswith(" LOCK"))
        assert columns - 40 < len(heading) <= columns


def test_columns_sorting_and_filter(start_target: StartTarget) -> None:
    pid = deadlocked(start_target)
    options = ["--view", "threads", "--columns", "thread,state", "--sort", "name"]
    done = tool.run("top", "-p", pid, "-b", "-n", 1, "--filter", "1", *options)
    lines = done.stdout.splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith(" THREAD"))
    assert lines[at].split() == ["THREAD", "STATE"]
    assert all("1" in line for line in lines[at + 1 :] if line.startswith("!"))


def test_a_declared_figure_sorts_the_locks(start_target: StartTarget) -> None:
    target = start_target("failed_trylocks")
    truth = target.truth()
    options = ["--columns", "lock,tryfail", "--idle"]
    done = tool.run("top", "-p", target.pid, "-b", "-n", 1, "--sort", "tryfail", *options)
    lines = done.stdout.splitlines()
    heading = next(number for number, line in enumerate(lines) if line.startswith(" LOCK"))
    failed = [int(line.split()[-1]) for line in lines[heading + 1 :] if "g_tried" in line]
    locks = sorted((truth["mutex"], truth["rwlock"]), reverse=True)
    assert failed == [*locks, truth["sem"]], "what only waits for work comes last"


@pytest.mark.parametrize(
    ("option", "wrong", "message"),
    [
        ("--sort", "colour", "no sort key 'colour' of locks: wait,"),
        ("--columns", "lock,colour", "no column 'colour' of locks: LOCK,"),
        ("--view", "graph", "--view"),
        ("-n", "0", "'0' is not a number"),
        ("-d", "0", "'0' is not a number of seconds"),
    ],
)
def test_a_wrong_option_is_one_line(
    option: str, wrong: str, message: str, start_target: StartTarget
) -> None:
    target = start_target("ring_of_three")
    done = tool.run("top", "-p", target.pid, "-b", "-n", 1, option, wrong)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert message in line


def test_the_parts_end_with_the_process(start_target: StartTarget) -> None:
    target = start_target("ring_of_three")
    running = tool.start("top", "-p", target.pid, "-b", "-d", "0.1")
    assert running.stdout is not None
    assert running.stdout.readline()
    target.kill()
    output, errors = running.communicate(timeout=tool.PATIENCE_S)
    assert running.returncode == 0, errors
    assert "ENDED" in output.rpartition("\n\n")[0].rpartition("\n\n")[2]


def test_a_screen_reader_gets_headers_and_values(start_target: StartTarget) -> None:
    pid = deadlocked(start_target)
    running = tool.start("-p", pid, environment={"ACCESSIBLE": "1"})
    assert running.stdout is not None
    found = dict[str, str]()
    while "Notes" not in found:
        header, colon, value = running.stdout.readline().rstrip("\n").partition(": ")
        assert colon or header.startswith("Keys"), header
        found[header] = value
    running.kill()
    running.communicate()
    assert found["State"] == "runs"
    assert found["Deadlock"].startswith("certain; ")
    assert found["Deadlock"].count(" waits for ") == 3
    assert found["Threads that wait"] == "3"
    assert found["Waiters"] == "1 thread"


def test_a_screen_reader_hears_the_end(start_target: StartTarget) -> None:
    target = start_target("ring_of_three")
    running = tool.start("top", "-p", target.pid, "--accessible")
    assert running.stdout is not None
    lines = [running.stdout.readline()]
    while not lines[-1].startswith("Notes"):
        lines.append(running.stdout.readline())
    target.kill()
    output, errors = running.communicate(timeout=tool.PATIENCE_S)
    assert running.returncode == 0, errors
    assert "State: ended" in output.splitlines()
    assert not any(line.startswith("Process") for line in output.splitlines())
