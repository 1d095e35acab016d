"""Saved files: whole, private, and never over another file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from unit.builders import scenarios

from locktop.collector.render import files, rendered_files


def test_write_file_writes_a_whole_private_file_and_overwrites_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a"
    files.write_file(path, b"one")
    with pytest.raises(files.NotWrittenError, match=r"a exists; --force"):
        files.write_file(path, b"two")
    assert path.read_bytes() == b"one"
    assert path.stat().st_mode & 0o777 == 0o600
    files.write_file(path, b"three", replace=True)
    assert path.read_bytes() == b"three"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("replace", [False, True])
def test_write_file_replaces_only_a_regular_file(tmp_path: Path, replace: bool) -> None:
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    target.write_bytes(b"kept")
    link.symlink_to(target)
    with pytest.raises(files.NotWrittenError, match=f"link is a symbolic link to {target}"):
        files.write_file(link, b"new", replace=replace)
    with pytest.raises(files.NotWrittenError, match="is a directory"):
        files.write_file(tmp_path, b"new", replace=replace)
    with pytest.raises(files.NotWrittenError, match=r"nodir/x\.json: no such directory"):
        files.write_file(tmp_path / "nodir" / "x.json", b"new", replace=replace)
    files.write_file(Path("/dev/null"), b"new", replace=replace)
    with pytest.raises(files.NotWrittenError, match=r"^/dev/full: no space left on device; make"):
        files.write_file(Path("/dev/full"), b"new", replace=replace)
    assert Path("/dev/null").is_char_device()
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        files.write_file(pipe, b"new", replace=replace)
        assert os.read(reader, 100) == b"new"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert target.read_bytes() == b"kept"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "pipe", "target"]


def test_a_file_name_has_no_path_of_a_process_name() -> None:
    from msgspec.structs import replace

    snapshot = scenarios.normal()
    hostile = replace(snapshot.process, comm="../../etc/x y\x1b")
    name = rendered_files.snapshot_name(replace(snapshot, process=hostile), ".json")
    assert name == "locktop-_.._etc_x_y_-4711-20261121T031245Z.json"
