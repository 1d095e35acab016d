"""A FILE of a command: opened in one way, whatever lies at its path."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace
from support import tool
from unit.recording.test_recording import scans

from locktop.collector.recording.recording_info import RecordingInfo
from locktop.collector.recording.recording_writer import RecordingWriter

_SECOND = 1_000_000_000
_BEGIN = 1_790_000_000 * _SECOND
COMMANDS = ["snapshot", "check", "callers", "timeline", "replay"]


def refusal(*arguments: str | Path) -> str:
    """Return the one line of a command that refuses its FILE."""
    done = tool.run(*map(str, arguments))
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    return line


@pytest.mark.parametrize("command", COMMANDS)
def test_only_a_regular_file_is_opened(command: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path / "link", Path("/dev/zero")):
        assert refusal(command, path) == f"locktop: {path}: not a regular file"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_missing_file_has_one_form_of_words(command: str, tmp_path: Path) -> None:
    path = tmp_path / "none"
    line = f"locktop: {path}: no such file or directory"
    assert refusal(command, path) == line
    times = ("--at", "50%") if command in ("snapshot", "check", "callers", "replay") else ()
    assert refusal(command, path, *times) == line


@pytest.mark.parametrize("command", COMMANDS)
def test_an_empty_file_is_called_so(command: str, tmp_path: Path) -> None:
    """A recorder that was killed at once may leave one."""
    (tmp_path / "r").touch()
    assert refusal(command, tmp_path / "r") == f"locktop: {tmp_path}/r: an empty file"


def test_a_fifo_in_a_ring_of_segments_is_left_out(tmp_path: Path) -> None:
    ring = _ring(tmp_path / "ring", 3)
    for number in range(4, 40):
        os.mkfifo(ring / f"{number:06}.locktop")
    done = tool.run("snapshot", str(ring), "--format", "text")
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert "000004.locktop: not a regular file" in line
    assert "33 more segments are damaged" in line


def test_a_ring_may_have_more_segments_than_a_process_may_open(tmp_path: Path) -> None:
    ring = _ring(tmp_path / "ring", 1100)
    limited = ("sh", "-c", 'ulimit -n 64; exec "$@"', "sh")
    for command in ("snapshot", "timeline"):
        done = tool.run_alone(command, str(ring), "--from", "+1s", prefix=limited)
        assert (done.returncode, done.stderr) == (0, "")


def _ring(path: Path, count: int) -> Path:
    """Write a directory of segments, with a snapshot each."""
    path.mkdir()
    snapshots = scans(count)
    info = RecordingInfo.from_snapshot(snapshots[0], "1.0")
    for number, snapshot in enumerate(snapshots, start=1):
        time_ns = _BEGIN + number * _SECOND
        writer = RecordingWriter(
            path / f"{number:06}.locktop", replace(info, segment=number), time_ns
        )
        writer.add_snapshot(snapshot, time_ns)
        writer.finish("the recording goes on in the next segment", time_ns)
        writer.close()
    return path
