"""``locktop replay``: files that are no recording, and no terminal."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from unit.builders import scenarios

from locktop.collector.recording.recording_info import RecordingInfo
from locktop.collector.recording.recording_writer import RecordingWriter
from locktop.tui import cli
from locktop.tui.commands import options


def _record(path: Path, count: int) -> None:
    made = scenarios.normal()
    began_ns = time.time_ns()
    writer = RecordingWriter(path, RecordingInfo.from_snapshot(made, "1.0"), began_ns)
    for number in range(count):
        writer.add_snapshot(made, began_ns + number)
    writer.finish("enough", began_ns + count)


def _only_line(capsys: pytest.CaptureFixture[str]) -> str:
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize("content", [None, b"", b"{}", b"LOCKTOP\n", b"LOCKTOP\n\x09\0\0\0"])
def test_a_file_that_is_no_recording_is_one_line_and_status_2(
    content: bytes | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (tmp_path / "f").write_bytes(content)
    assert cli.main(["replay", str(tmp_path / "f")]) == 2
    assert str(tmp_path / "f") in _only_line(capsys)


def test_a_recording_without_a_snapshot_is_one_line_and_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _record(tmp_path / "f", 0)
    assert cli.main(["replay", str(tmp_path / "f")]) == 2
    assert "no snapshot" in _only_line(capsys)


def test_without_a_terminal_the_command_says_what_to_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _record(tmp_path / "f", 3)
    assert cli.main(["replay", str(tmp_path / "f")]) == 2
    assert f"use `locktop snapshot {tmp_path / 'f'} --at TIME`" in _only_line(capsys)


@pytest.mark.parametrize("size", ["64", "64X", "-1M", "0M", "17G", "1e3M", "", "500K"])
def test_a_wrong_size_of_the_memory_is_one_line_and_status_2(
    size: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([f"--history={size}"])
    assert ended.value.code == 2
    assert "is not a size from 1M to 16G, as 64M, or 0" in _only_line(capsys)


@pytest.mark.parametrize(("text", "size"), [("0", 0), ("64M", 64 << 20), ("2G", 2 << 30)])
def test_a_size_of_the_memory_is_in_bytes(text: str, size: int) -> None:
    assert cli.parser().parse_args(["-p", "1", "--history", text]).history == size
    assert cli.parser().parse_args(["run", "--history", text, "--", "x"]).history == size
    default = cli.parser().parse_args(["-p", "1"])
    options.apply_settings(default)
    assert default.history == 64 << 20
