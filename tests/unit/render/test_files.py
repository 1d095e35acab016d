"""Saved files: whole, private, and never over another file."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from unit.builders import made_profiles, scenarios

from locktop.collector.errors import LocktopError
from locktop.collector.render import copied_file, files, open_profile, rendered_files
from locktop.collector.render.profiles.profile import SnapshotProfile
from locktop.collector.render.snapshot_signal import SnapshotSignal


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


@pytest.mark.parametrize(
    ("comm", "taken_at", "name"),
    [
        ("../../etc/x y\x1b", "2026-11-21T03:12:45.678Z", "_.._etc_x_y_-4711-20261121T031245Z"),
        ("..", "2026-11-21T03:12:45.678Z", "process-4711-20261121T031245Z"),
        ("store-1_a", "yesterday", "store-1_a-4711-Z"),
    ],
)
def test_a_file_name_has_no_path_of_a_process_name(comm: str, taken_at: str, name: str) -> None:
    calm = scenarios.normal()
    hostile = replace(calm, process=replace(calm.process, comm=comm), taken_at=taken_at)
    assert rendered_files.snapshot_name(hostile, ".json") == f"locktop-{name}.json"


def test_a_call_tree_is_named_by_its_process_if_that_is_known() -> None:
    profile = SnapshotProfile(scenarios.normal())
    assert rendered_files.call_tree_name(profile) == "locktop-callers-store-4711"
    made = made_profiles.MadeProfile(made_profiles.ROOT, made_profiles.MIDDLE)
    assert rendered_files.call_tree_name(made) == "locktop-callers"


def test_a_name_that_exists_gets_a_number(tmp_path: Path) -> None:
    names = [files.save_new("x", ".txt", b"new", tmp_path).name for _ in range(99)]
    assert names == ["x.txt", *(f"x-{number}.txt" for number in range(2, 100))]
    with pytest.raises(files.NotWrittenError, match=f"^{tmp_path}: too many files called x"):
        files.save_new("x", ".txt", b"new", tmp_path)
    with pytest.raises(files.NotWrittenError, match="no such directory"):
        files.save_new("x", ".txt", b"new", tmp_path / "nodir")


def test_a_file_goes_to_the_working_directory_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = rendered_files.save_snapshot(scenarios.normal(), "text")
    assert path == tmp_path / "locktop-store-4711-20261121T031245Z.txt"
    assert "\nlocktop 2026-11-21T03:12:45.678Z on db1\n" in path.read_text()


def test_what_the_user_copies_replaces_what_was_copied_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    copied_file.save_copy(b"first")
    path = copied_file.save_copy(b"second")
    assert path == tmp_path / "locktop/copied.txt"
    assert path.read_bytes() == b"second"
    assert path.stat().st_mode & 0o777 == 0o600
    path.unlink()
    path.mkdir()
    with pytest.raises(LocktopError, match=r"copied\.txt is a directory; name a file in it"):
        copied_file.save_copy(b"third")


@pytest.fixture
def usr2() -> Iterator[None]:
    before = signal.getsignal(signal.SIGUSR2)
    yield
    signal.signal(signal.SIGUSR2, before)


@pytest.mark.usefixtures("usr2")
def test_the_signal_saves_one_snapshot(tmp_path: Path) -> None:
    woken: list[int] = []
    saver = SnapshotSignal(lambda: woken.append(1), tmp_path)
    saver.install()
    assert saver.save(scenarios.normal()) == ""
    signal.raise_signal(signal.SIGUSR2)
    path = tmp_path / "locktop-store-4711-20261121T031245Z.json"
    assert (woken, saver.is_pending) == ([1], True)
    assert saver.save(scenarios.normal()) == f"snapshot {path}"
    assert json.loads(path.read_bytes())["format"] == "locktop.snapshot"
    assert saver.save(scenarios.normal()) == ""
    lost = SnapshotSignal(lambda: None, tmp_path / "nodir")
    lost.is_pending = True
    assert lost.save(scenarios.normal()).startswith(f"no snapshot: {tmp_path}/nodir/locktop-store")


@pytest.mark.usefixtures("usr2")
def test_an_ignored_signal_stays_ignored() -> None:
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    SnapshotSignal(lambda: None).install()
    assert signal.getsignal(signal.SIGUSR2) is signal.SIG_IGN


def test_a_file_with_a_profile_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = rendered_files.save_snapshot(scenarios.normal(), "json", tmp_path)
    assert open_profile.open_snapshot(str(path)).process.comm == "store"
    monkeypatch.setattr(open_profile, "MAX_BYTES", path.stat().st_size)
    assert open_profile.open_profile(str(path)).process.pid == 4711
    monkeypatch.setattr(open_profile, "MAX_BYTES", 2048)
    with pytest.raises(LocktopError, match=f"^{path} is larger than 2.00 KiB$"):
        open_profile.open_profile(str(path))
    path.write_bytes(b"")
    with pytest.raises(LocktopError, match=f"^{path}: an empty file$"):
        open_profile.open_snapshot(str(path))
    with pytest.raises(LocktopError, match=f"^{tmp_path}/none: no such file"):
        open_profile.open_profile(f"{tmp_path}/none")
