"""Lines of source files: only of regular files, and only after they were read."""

from __future__ import annotations

import os
from pathlib import Path

from locktop.collector.format.source_lines import SourceLines


def test_a_line_is_known_after_the_reading(tmp_path: Path) -> None:
    file = tmp_path / "a.c"
    file.write_text("int a;\n  lock(&m);\n")
    lines = SourceLines()
    assert lines.line(str(file), 2) == ""
    assert lines.is_wanting
    assert lines.read()
    assert not lines.is_wanting
    assert lines.line(str(file), 2) == "lock(&m);"
    assert lines.line(str(file), 3) == ""
    assert lines.line(None, 2) == lines.line(str(file), None) == lines.line("a.c", 1) == ""


def test_no_fifo_and_no_missing_file_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    lines = SourceLines()
    for name in ("fifo", "missing"):
        lines.line(str(tmp_path / name), 1)
    assert not lines.read()
    assert lines.line(str(tmp_path / "fifo"), 1) == ""
    assert not lines.is_wanting, "a file that cannot be read is not wanted again"
