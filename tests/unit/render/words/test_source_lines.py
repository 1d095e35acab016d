"""Lines of source files: only of regular files, and only after they were read."""

from __future__ import annotations

import os
from pathlib import Path

from locktop.collector.render.words.source_lines import SourceLines

#: A process that started after every file was written.
LATER_S = 1e12


def read(lines: SourceLines, pid: int = os.getpid(), started_s: float = LATER_S) -> bool:
    return lines.read(pid, started_s)


def test_a_line_is_known_after_the_reading(tmp_path: Path) -> None:
    file = tmp_path / "a.c"
    file.write_text("int a;\n  lock(&m);\n")
    lines = SourceLines()
    assert lines.line(str(file), 2) == ""
    assert lines.is_wanting
    assert read(lines)
    assert not lines.is_wanting
    assert lines.line(str(file), 2) == "lock(&m);"
    assert lines.line(str(file), 3) == ""
    assert lines.line(None, 2) == lines.line(str(file), None) == lines.line("a.c", 1) == ""


def test_no_fifo_and_no_missing_file_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    lines = SourceLines()
    for name in ("fifo", "missing"):
        lines.line(str(tmp_path / name), 1)
    assert not read(lines)
    assert lines.line(str(tmp_path / "fifo"), 1) == ""
    assert not lines.is_wanting, "a file that cannot be read is not wanted again"


def test_a_form_feed_ends_no_line(tmp_path: Path) -> None:
    """A compiler counts line feeds, and sources of GNU have form feeds."""
    file = tmp_path / "a.c"
    file.write_bytes(b"one\n\f\ntwo\xe2\x80\xa8\x0b\x85 \r\nthree")
    lines = SourceLines()
    for number in (3, 4, 5, 1 << 62):
        lines.line(str(file), number)
    assert read(lines)
    assert lines.line(str(file), 3).startswith("two")
    assert lines.line(str(file), 4) == "three"
    assert lines.line(str(file), 5) == lines.line(str(file), 1 << 62) == ""
    assert not lines.is_wanting


def test_lines_of_many_files_are_read_once(tmp_path: Path) -> None:
    """Details with many files would be read and drawn without end."""
    files = [tmp_path / f"{number}.c" for number in range(200)]
    for file in files:
        file.write_text("int a;")
    lines = SourceLines()
    for file in files:
        lines.line(str(file), 1)
    assert read(lines)
    assert {lines.line(str(file), 1) for file in files} == {"int a;"}
    assert not lines.is_wanting


def test_the_lines_that_are_kept_are_bounded(tmp_path: Path) -> None:
    file = tmp_path / "a.c"
    file.write_text("x" * 10_000 + "\n" * 10_000)
    lines = SourceLines()
    assert lines.line(str(file), 1) == ""
    assert read(lines)
    assert len(lines.line(str(file), 1)) == 400
    for number in range(2, 10_000):
        lines.line(str(file), number)
    read(lines)
    assert lines.line(str(file), 1) == "", "given up for others"


def test_a_file_of_proc_is_not_read() -> None:
    """A reading of some of them takes messages away from others."""
    lines = SourceLines()
    lines.line("/proc/self/status", 1)
    read(lines)
    assert lines.line("/proc/self/status", 1) == ""


def test_a_file_that_is_newer_than_the_process_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "a.c"
    file.write_text("int a;")
    lines = SourceLines()
    lines.line(str(file), 1)
    assert not read(lines, started_s=file.stat().st_mtime - 1.0)
    assert lines.line(str(file), 1) == ""


def test_no_file_is_read_for_a_process_that_is_not_here(tmp_path: Path) -> None:
    file = tmp_path / "a.c"
    file.write_text("int a;")
    lines = SourceLines()
    lines.line(str(file), 1)
    assert not read(lines, pid=(1 << 22) + 1)
    assert not lines.is_wanting
