"""Wrong use gives one line on stderr, nothing on stdout, and exit status 2."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import tool
from support.screen import Screen
from support.targets import Compiler, StartTarget, Target

from locktop.collector.sources.launch import library

NOBODY = "65534"
COMMANDS = ["snapshot", "check"]


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one line of a command that could not do its work."""
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("locktop: ")
    return lines[0]


def shared_file(pid: int) -> str:
    """Return the name of a process's file."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    started = stat[stat.rindex(")") :].split()[20]
    return f"locktop-{pid}-{started}"


def free_pid() -> int:
    ended = subprocess.Popen(["true"])
    ended.wait()  # after the wait the pid is free
    return ended.pid


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_pid_is_refused(command: str) -> None:
    assert "no such process" in refusal(tool.run(command, "-p", free_pid()))


def test_the_screen_refuses_an_unknown_pid(need: Callable[[str], Path]) -> None:
    with Screen(need("tmux"), "-p", free_pid()) as screen:
        assert screen.status() == 2
        assert "no such process" in screen.text()


def test_the_screen_needs_a_terminal() -> None:
    assert "terminal" in refusal(tool.run("-p", os.getpid()))


@pytest.mark.parametrize("pid", ["0", "-1", "x", "99999999999"])
def test_a_word_that_is_no_pid_is_refused(pid: str) -> None:
    refusal(tool.run("snapshot", f"--pid={pid}"))


def test_a_process_without_the_library_has_no_level_to_set(start_unprepared: StartTarget) -> None:
    target = start_unprepared("nothing_to_show")
    target.expect("ready")
    line = refusal(tool.run("ctl", "-p", target.pid, "--level", "all"))
    assert "locktop run" in line, "the line says how to load the library"
    assert target.finish() == (0, [])


def test_run_refuses_an_unknown_program() -> None:
    assert "no-such-program" in refusal(tool.run_alone("run", "--", "no-such-program"))


@pytest.fixture
def public_directory() -> Iterator[Path]:
    """A directory that every user may enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


def test_a_process_of_another_user_is_refused(
    compiler: Compiler, public_directory: Path, need: Callable[[str], Path]
) -> None:
    if os.geteuid() != 0:
        if os.stat("/proc/1").st_uid == os.geteuid():
            pytest.skip("this user owns the first process, as in a container")
        assert "root" in refusal(tool.run("snapshot", "-p", 1))
        return
    # Root without capabilities has the rights of an ordinary user. Unlike another user, this root
    # may read an interpreter in root's home directory.
    setpriv = str(need("setpriv"))
    program = shutil.copy(compiler.program("nothing_to_show"), public_directory)
    preload = shutil.copy(library(), public_directory)
    as_nobody = [setpriv, "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]
    powerless = [setpriv, "--bounding-set=-all", "--inh-caps=-all"]
    with Target([*as_nobody, "env", f"LD_PRELOAD={preload}", program]) as target:
        target.expect("ready")
        assert tool.run("snapshot", "-p", target.pid).returncode == 0, "root may scan"
        line = refusal(tool.run_alone("snapshot", "-p", target.pid, prefix=powerless))
        assert "user" in line
        target.finish()


def copy_of_file(pid: int, directory: Path, size: int) -> Path:
    """Put the first ``size`` bytes of a process's file into another directory."""
    name = shared_file(pid)
    with open(f"/dev/shm/{name}", "rb") as original:
        (directory / name).write_bytes(original.read(size))
    return directory / name


@pytest.mark.parametrize("size", [0, 1, 100, 4096, 8191, 8192, 12288, 262144])
def test_a_truncated_shared_file_is_refused(
    size: int, start_target: StartTarget, tmp_path: Path
) -> None:
    target = start_target("contention_already_over")
    target.truth()
    copy_of_file(target.pid, tmp_path, size)
    refusal(tool.run("snapshot", "-p", target.pid, environment={"LOCKTOP_DIR": str(tmp_path)}))


def test_a_shared_file_smaller_than_its_header_says_is_refused(
    start_target: StartTarget, tmp_path: Path
) -> None:
    target = start_target("nested_locks_one_order")
    target.expect("ready")
    name = shared_file(target.pid)
    directory = {"LOCKTOP_DIR": str(tmp_path)}
    os.truncate(copy_of_file(target.pid, tmp_path, 1 << 20), os.stat(f"/dev/shm/{name}").st_size)
    assert tool.run("snapshot", "-p", target.pid, environment=directory).returncode == 0
    os.truncate(tmp_path / name, 1 << 16)
    refusal(tool.run("snapshot", "-p", target.pid, environment=directory))


def test_a_file_with_other_content_is_refused(
    start_unprepared: StartTarget, tmp_path: Path
) -> None:
    target = start_unprepared("nothing_to_show")
    target.expect("ready")
    (tmp_path / shared_file(target.pid)).write_bytes(b"something else entirely\n" * 10_000)
    refusal(tool.run("snapshot", "-p", target.pid, environment={"LOCKTOP_DIR": str(tmp_path)}))


def test_the_shared_file_of_another_process_is_refused(
    start_target: StartTarget, tmp_path: Path
) -> None:
    target, other = start_target("nothing_to_show"), start_target("nothing_to_show")
    target.expect("ready")
    other.expect("ready")
    original = Path("/dev/shm", shared_file(other.pid))
    with open(original, "rb") as file:
        (tmp_path / shared_file(target.pid)).write_bytes(file.read(1 << 18))
    os.truncate(tmp_path / shared_file(target.pid), original.stat().st_size)
    line = refusal(
        tool.run("snapshot", "-p", target.pid, environment={"LOCKTOP_DIR": str(tmp_path)})
    )
    assert "another process" in line


@pytest.mark.parametrize("make", ["link", "fifo", "directory"])
def test_a_link_a_fifo_or_a_directory_instead_of_the_shared_file_is_refused(
    make: str, start_unprepared: StartTarget, tmp_path: Path
) -> None:
    target = start_unprepared("nothing_to_show")
    target.expect("ready")
    path = tmp_path / shared_file(target.pid)
    if make == "link":
        path.symlink_to("/etc/passwd")
    elif make == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
    refusal(tool.run("snapshot", "-p", target.pid, environment={"LOCKTOP_DIR": str(tmp_path)}))


def test_without_the_directory_the_program_runs_and_a_note_says_what_to_do(
    start_target: StartTarget, tmp_path: Path
) -> None:
    missing = str(tmp_path / "missing")
    target = start_target("contention_already_over", environment={"LOCKTOP_DIR": missing})
    assert target.truth()["contended"] == 50, "the program continues"
    line = tool.snapshot(target.pid)["notes"][0]
    assert missing in line
    assert "no such directory" in line
    assert "set LOCKTOP_DIR" in line, "the note says what to do"
    assert target.finish() == (0, [])


@pytest.fixture
def tiny_tmpfs(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A small file system; its size in KiB is the parameter of the test."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    directory = tmp_path / "tiny"
    directory.mkdir()
    size = f"size={request.param}k"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(directory)], check=True)
    try:
        yield directory
    finally:
        subprocess.run(["umount", "-l", str(directory)], check=True)


def test_if_the_directory_is_a_file_a_note_says_what_to_do(
    tmp_path: Path, start_target: StartTarget
) -> None:
    file = tmp_path / "file"
    file.touch()
    target = start_target("nothing_to_show", environment={"LOCKTOP_DIR": str(file)})
    target.expect("ready")
    line = tool.snapshot(target.pid)["notes"][0]
    assert f"cannot make {file}/" in line
    assert "set LOCKTOP_DIR to a directory" in line
    assert target.finish() == (0, [])


def test_the_tool_also_searches_the_default_directory(
    tmp_path: Path, start_target: StartTarget
) -> None:
    file = tmp_path / "file"
    file.touch()
    target = start_target("one_contended_hold_of_three")
    target.expect("ready")
    done = tool.run("ctl", "-p", target.pid, environment={"LOCKTOP_DIR": str(file)})
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", [["list"], ["list", "--json"]])
def test_output_to_a_full_device_is_an_error(command: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [tool.COMMAND, *command], stdout=full, stderr=subprocess.PIPE, text=True
        )
    (line,) = done.stderr.splitlines()
    assert line == "locktop: cannot write the output: no space left on device; make room there"
    assert done.returncode == 2


@pytest.mark.parametrize("tiny_tmpfs", [16], indirect=True)
def test_without_room_at_the_start_the_program_runs_and_a_note_says_what_to_do(
    tiny_tmpfs: Path, start_target: StartTarget
) -> None:
    target = start_target("contention_already_over", environment={"LOCKTOP_DIR": str(tiny_tmpfs)})
    assert target.truth()["contended"] == 50, "the program continues"
    line = tool.snapshot(target.pid)["notes"][0]
    assert "no space left" in line
    assert "make room" in line, "the note says what to do"
    assert list(tiny_tmpfs.iterdir()) == [], "the library removes its file"
    assert target.finish() == (0, [])


@pytest.mark.parametrize("tiny_tmpfs", [512], indirect=True)
def test_without_room_later_the_program_runs_and_the_report_says_so(
    tiny_tmpfs: Path, start_target: StartTarget
) -> None:
    target = start_target("rolling_contention", environment={"LOCKTOP_DIR": str(tiny_tmpfs)})
    target.expect("ready")

    def is_full(document: dict[str, Any]) -> bool:
        return any("room" in note or "space" in note for note in document["notes"])

    tool.scan_until(target.pid, is_full, "a note that the file system is full")
    target.go_on()
    truth = target.truth()
    assert sum(truth["locks"].values()) == sum(truth["threads"].values()), "the program is right"
    done = tool.run("snapshot", "-p", target.pid, "--format", "text")
    assert done.returncode == 0, done.stderr
    assert "room" in done.stdout or "space" in done.stdout, "the report says what is missing"
    target.go_on()
    target.expect("joined")
    assert target.finish() == (0, [])
