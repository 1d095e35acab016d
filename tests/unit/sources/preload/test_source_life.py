"""The preload source from attach to the end of the process: states, levels, polls and errors."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.shared_file import SharedFile, key

from locktop.collector.errors import LocktopError
from locktop.collector.linux import procfs
from locktop.collector.model import Snapshot
from locktop.collector.native import lib
from locktop.collector.sources import discover
from locktop.collector.sources.attach import attach
from locktop.collector.sources.preload.source import PreloadSource

MUTEX = key(lib.LT_KIND_MUTEX, 0x1000)


class Process:
    """This process as the kernel shows it: it may end, and execute programs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.real = procfs.stat(os.getpid())
        self.stat: procfs.Stat | None = self.real
        self.tids: list[int] = procfs.tids(os.getpid())
        self.exe = self.real_exe = procfs.exe(os.getpid())
        self.maps: bytes | None = None
        real_maps = procfs.maps

        def stat(_: int) -> procfs.Stat:
            if self.stat is None:
                raise FileNotFoundError
            return self.stat

        def exe(_: int) -> str:
            if self.exe == "":
                raise PermissionError
            return self.exe

        def maps(pid: int) -> bytes:
            return real_maps(pid) if self.maps is None else self.maps

        monkeypatch.setattr(procfs, "stat", stat)
        monkeypatch.setattr(procfs, "exe", exe)
        monkeypatch.setattr(procfs, "maps", maps)
        monkeypatch.setattr(procfs, "tids", lambda _: self.tids)


class Watched:
    """A file with a thread that waits, and the source of its process."""

    def __init__(self, directory: Path) -> None:
        self.file = file = SharedFile()
        lock = file.add_lock(lib.LT_KIND_MUTEX, 0x1000)
        file.wait(file.add_thread(os.getpid()), lock, MUTEX, since=time.monotonic_ns())
        self.path = file.save(directory)
        source = attach(file.pid)
        assert isinstance(source, PreloadSource)
        self.source = source


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Process:
    return Process(monkeypatch)


@pytest.fixture
def watched(directory: Path, process: Process) -> Iterator[Watched]:
    watched = Watched(directory)
    with closing(watched.source):
        yield watched


# ---- is the process alive? ----


@pytest.mark.parametrize(
    ("state", "threads", "ended"),
    [("S", 1, False), ("Z", 1, True), ("X", 1, True), ("Z", 2, False)],
)
def test_a_process_ends_with_its_last_thread(
    watched: Watched, process: Process, state: str, threads: int, ended: bool
) -> None:
    process.stat = process.real._replace(state=state)
    process.tids = process.tids[:1] * threads
    assert watched.source.scan().ended is ended


def test_a_process_with_another_start_time_is_another_one(
    watched: Watched, process: Process
) -> None:
    process.stat = process.real._replace(start_time=process.real.start_time + 1)
    assert watched.source.scan().ended


@pytest.mark.parametrize(
    ("state", "says"), [("T", "kill -CONT"), ("t", "debugger or tracer"), ("S", "")]
)
def test_a_stopped_process_says_so(
    watched: Watched, process: Process, state: str, says: str
) -> None:
    process.stat = process.real._replace(state=state)
    found = watched.source.scan()
    assert found.stopped is bool(says)
    assert any(says in note and "has stopped" in note for note in found.notes) is bool(says)


def test_the_snapshot_of_the_end_is_the_last_one(watched: Watched, process: Process) -> None:
    process.stat = None
    last = watched.source.scan()
    assert last.ended
    process.stat = process.real
    assert watched.source.scan() is last


def test_a_file_that_the_end_damaged_ends_the_last_snapshot(
    watched: Watched, process: Process
) -> None:
    before = watched.source.scan()
    os.truncate(watched.path, 10_000)
    process.stat = None
    last = watched.source.scan()
    assert last.ended
    assert last.threads == before.threads
    assert "these are not the final figures" in last.notes[-1]
    assert last.notes[:-1] == before.notes


def test_a_file_that_was_damaged_before_the_first_scan_is_an_error(
    watched: Watched, process: Process
) -> None:
    os.truncate(watched.path, 10_000)
    process.stat = None
    with pytest.raises(LocktopError, match="truncated"):
        watched.source.scan()


# ---- the poll of waits ----


def test_the_waits_of_the_moment_are_polled(watched: Watched) -> None:
    found = watched.source.waits()
    assert found is not None
    assert found.keys() == {os.getpid()}


def test_only_a_scan_shows_the_waits_after_an_end_or_an_exec(
    watched: Watched, process: Process
) -> None:
    process.exe = "/bin/other"
    assert watched.source.waits() is None
    process.exe = process.real_exe
    assert watched.source.waits() is not None
    process.stat = None
    assert watched.source.waits() is None


def test_only_a_scan_shows_the_waits_of_a_removed_file(watched: Watched) -> None:
    watched.path.unlink()
    assert watched.source.waits() is None


def test_only_a_scan_says_that_a_file_was_cut_off(watched: Watched) -> None:
    os.truncate(watched.path, len(watched.file.data) - 1)
    assert watched.source.waits() is None


def test_a_verdict_of_a_full_scan_is_used_by_the_poll(watched: Watched) -> None:
    watched.source.scan()
    waits = watched.source.waits()
    assert waits is not None
    assert waits[os.getpid()].idle is None
    watched.source.scan(resolve=True)
    waits = watched.source.waits()
    assert waits is not None
    assert waits[os.getpid()].idle is False


def test_a_hurried_scan_teaches_no_verdict(watched: Watched) -> None:
    watched.source.hurry()
    watched.source.scan(resolve=True)
    waits = watched.source.waits()
    assert waits is not None
    assert waits[os.getpid()].idle is None


# ---- levels ----


def test_an_ended_process_has_no_level(watched: Watched, process: Process) -> None:
    process.stat = None
    with pytest.raises(LocktopError, match="has ended"):
        watched.source.set_level("all")


# ---- exec ----


def other_program(watched: Watched, process: Process) -> Snapshot:
    process.exe = "/bin/other"
    return watched.source.scan()


def test_a_program_that_put_a_new_file_is_followed(
    watched: Watched, process: Process, directory: Path
) -> None:
    watched.source.scan()
    watched.path.unlink()
    new = SharedFile()
    new.add_thread(os.getpid(), name=b"new\0".ljust(16, b"\0"))
    new.save(directory)
    found = other_program(watched, process)
    assert not found.ended
    assert all(thread.waiting_for is None for thread in found.threads)
    waits = watched.source.waits()
    assert waits == {}


def test_a_program_with_the_same_file_is_the_same_program(
    watched: Watched, process: Process
) -> None:
    """The name of a running program changes if its file is moved or deleted."""
    watched.source.scan()
    found = other_program(watched, process)
    assert not found.ended
    assert any(thread.waiting_for for thread in found.threads)


def test_a_program_without_the_library_ends_the_source(
    watched: Watched, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = watched.source.scan()
    watched.path.unlink()
    process.maps = b"7f0000000000-7f0000001000 r-xp 00000000 00:00 0 /bin/other\n"
    found = other_program(watched, process)
    assert found.ended
    assert found.notes == (
        *before.notes, "the process has executed /bin/other, which runs without the library"
    )  # fmt: skip
    assert watched.source.scan() is found


def test_a_level_for_a_program_without_the_library_is_an_error(
    watched: Watched, process: Process
) -> None:
    watched.source.scan()
    watched.path.unlink()
    process.maps = b"7f0000000000-7f0000001000 r-xp 00000000 00:00 0 /bin/other\n"
    process.exe = "/bin/other"
    with pytest.raises(LocktopError, match="which runs without the library"):
        watched.source.set_level("all")


@pytest.mark.parametrize("maps", [b"", b"7f0000000000-7f0000001000 r-xp 0 0 0 /liblocktop.so\n"])
def test_a_removed_file_is_still_read(watched: Watched, process: Process, maps: bytes) -> None:
    watched.source.scan()
    watched.path.unlink()
    process.maps = maps
    found = watched.source.scan()
    assert not found.ended
    assert any(thread.waiting_for for thread in found.threads)


def test_a_file_without_a_name_is_read_before_any_snapshot(
    watched: Watched, process: Process
) -> None:
    watched.path.unlink()
    process.maps = b"7f0000000000-7f0000001000 r-xp 00000000 00:00 0 /bin/other\n"
    assert not watched.source.scan().ended


def test_a_program_whose_name_locktop_may_not_see_is_the_same(
    watched: Watched, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched.source.scan()
    process.exe = ""

    def refuse(_: object) -> None:
        raise AssertionError("looked for a new file")

    monkeypatch.setattr(discover, "open_memory", refuse)
    assert not watched.source.scan().ended


def test_a_new_program_has_a_moment_to_make_its_file(
    watched: Watched, process: Process, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched.source.scan()
    watched.path.unlink()
    pauses: list[float] = []

    def sleep(duration_s: float) -> None:
        pauses.append(duration_s)
        if len(pauses) == 4:
            SharedFile().save(directory)

    monkeypatch.setattr(time, "sleep", sleep)
    found = other_program(watched, process)
    assert len(pauses) == 4
    assert all(thread.waiting_for is None for thread in found.threads)
