"""Sessions: begun, ended, found by another process, and never a way to another user's files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace
from unit.builders import records, scenarios

from locktop.collector.errors import LocktopError
from locktop.collector.model import Snapshot
from locktop.collector.recording import sessions
from locktop.collector.recording.sessions import LiveSession


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "locktop"


def scan(second: float, **more: object) -> Snapshot:
    """A scan of this process, with a lock that threads wait for once in each second."""
    made = records.classified(scenarios.normal)()
    first, *others = made.locks
    lock = replace(first, contended=first.contended + int(second))
    process = replace(made.process, pid=os.getpid())
    made = replace(made, locks=(lock, *others), duration_s=100.0 + second, process=process)
    return replace(made, **more)


def contended(snapshot: Snapshot) -> int:
    return max(lock.contended for lock in snapshot.locks)


def test_a_session_that_ended_has_both_of_its_ends() -> None:
    path = sessions.path_of(os.getpid())
    assert sessions.load(path) is None
    sessions.start(path, scan(1))
    assert sessions.load(path) == sessions.Session(baseline=scan(1), end=None)
    assert sessions.stop(path, scan(5)) == sessions.load(path)
    assert sessions.load(path) == sessions.Session(baseline=scan(1), end=scan(5))
    with pytest.raises(LocktopError, match="no session goes on"):
        sessions.stop(path, scan(6))
    sessions.start(path, scan(7))
    assert sessions.load(path) == sessions.Session(baseline=scan(7), end=None)


def test_only_the_user_may_read_the_file(runtime: Path) -> None:
    path = sessions.path_of(os.getpid())
    sessions.start(path, scan(1))
    assert [entry.name for entry in runtime.iterdir()] == [path.name]
    assert path.stat().st_mode & 0o777 == 0o600
    assert runtime.stat().st_mode & 0o777 == 0o700


def test_files_of_processes_that_ended_are_removed(runtime: Path) -> None:
    path = sessions.path_of(os.getpid())
    own = path.name
    for name in (f"session-{os.getpid()}-1", "session-4194303-5", "session-4194303-5.9.new", "x"):
        runtime.mkdir(exist_ok=True)
        (runtime / name).write_text("")
    sessions.start(path, scan(1))
    assert {entry.name for entry in runtime.iterdir()} == {own, "x"}


def test_a_link_or_a_damaged_file_is_no_session(tmp_path: Path) -> None:
    path = sessions.path_of(os.getpid())
    sessions.start(path, scan(1))
    data = path.read_bytes()
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LocktopError, match="no regular file"):
        sessions.load(path)
    sessions.start(path, scan(2))  # replaces the link, not its target
    assert (tmp_path / "elsewhere").read_bytes() == data
    path.write_bytes(data[:-1])
    with pytest.raises(LocktopError, match="cut off"):
        sessions.load(path)


def test_a_directory_that_others_may_write_is_not_used(
    runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    runtime.mkdir()
    runtime.chmod(0o777)
    path = sessions.path_of(os.getpid())
    assert path.parent == tmp_path / "cache/locktop/sessions"
    sessions.start(path, scan(1))
    assert sessions.load(path) is not None


def test_a_screen_shows_figures_from_zero_after_the_start() -> None:
    live = LiveSession()
    assert live.apply(first := scan(1)) is first
    assert "from zero" in live.start()
    applied = live.apply(scan(4))
    assert (applied.session_s, applied.duration_s, contended(applied)) == (3.0, 3.0, 3)
    assert "anew" in live.start()
    assert contended(live.apply(scan(6))) == 2
    assert "--session" in live.stop()
    assert live.apply(last := scan(7)) is last
    with pytest.raises(LocktopError, match="no session"):
        live.stop()


def test_a_screen_follows_the_commands() -> None:
    live, path = LiveSession(), sessions.path_of(os.getpid())
    live.apply(scan(1))
    sessions.start(path, scan(2))
    assert contended(live.apply(scan(5))) == 3
    sessions.stop(path, scan(6))
    assert live.apply(scan(7)).session_s is None
    live.start()
    path.unlink()
    assert live.apply(scan(8)).session_s is None


def test_the_commands_find_the_session_of_a_screen() -> None:
    live = LiveSession()
    live.apply(scan(3))
    live.start()
    session = sessions.load(sessions.path_of(os.getpid()))
    assert session == sessions.Session(baseline=scan(3), end=None)


def test_a_sampled_process_has_a_session_without_a_file(runtime: Path) -> None:
    live = LiveSession()
    live.apply(records.sampled(scan(1)))
    live.start()
    assert live.apply(records.sampled(scan(3))).session_s == 2.0
    live.stop()
    assert not runtime.exists()


@pytest.mark.parametrize("change", [{"duration_s": 50.0}, {"source": "proc"}])
def test_a_program_that_was_executed_meanwhile_counts_anew(change: dict[str, object]) -> None:
    live = LiveSession()
    live.apply(scan(1))
    live.start()
    assert live.apply(scan(3, **change)).session_s is None


def test_without_a_scan_there_is_nothing_to_begin() -> None:
    with pytest.raises(LocktopError, match="no scan"):
        LiveSession().start()
