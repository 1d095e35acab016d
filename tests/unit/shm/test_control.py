"""The control page: levels that are set, and claims on a dormant process."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest
from support.eventually import until
from support.shared_file import SharedFile

from locktop.collector.errors import LocktopError
from locktop.collector.linux.target import find_process
from locktop.collector.native import lib
from locktop.collector.shm import control
from locktop.collector.shm.layout import CONTROL, Control
from locktop.collector.sources import discover
from locktop.collector.sources.attach import attach
from locktop.collector.sources.levels import NAMES as LEVELS
from locktop.collector.sources.preload.source import PreloadSource


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims are renewed more often."""
    monkeypatch.setattr(control, "RENEW_EVERY_S", 0.01)


def page_of(path: Path) -> Control:
    return CONTROL.unpack(path.read_bytes(), lib.LT_CONTROL_OFFSET)


def set_level(name: str) -> str:
    """Set the level as ``locktop ctl`` does, from outside."""
    memory = discover.open_memory(find_process(os.getpid()))
    try:
        return control.set_level(memory, name)
    finally:
        memory.close()


def claim_is_kept() -> bool:
    return any(thread.name == "claim" for thread in threading.enumerate())


def dormant_file(directory: Path, epoch: int = 3) -> Path:
    file = SharedFile()
    file.control.mode = epoch << 8 | lib.LT_LEVEL_DORMANT
    file.control.base_level = lib.LT_LEVEL_DORMANT
    return file.save(directory)


def attached() -> PreloadSource:
    source = attach(os.getpid())
    assert isinstance(source, PreloadSource)
    return source


@pytest.mark.usefixtures("hurried")
def test_a_claim_wakes_a_dormant_process_and_lasts_between_scans(directory: Path) -> None:
    path = dormant_file(directory)
    source = attached()
    first = page_of(path)
    assert first.mode == 4 << 8 | lib.LT_LEVEL_CONTENDED
    assert (first.claim_pid, first.claim_level) == (os.getpid(), lib.LT_LEVEL_CONTENDED)
    until(lambda: page_of(path).claim_ticks > first.claim_ticks, "a claim that is renewed")
    assert page_of(path).mode == first.mode
    snapshot = source.scan()
    assert (snapshot.level, snapshot.complete) == ("contended", False)
    assert any("was dormant for a time" in note for note in snapshot.notes)
    source.close()
    assert not claim_is_kept()


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("level", ["dormant", "counting", "all"])
def test_a_level_set_by_a_user_ends_the_claim(directory: Path, level: str) -> None:
    path = dormant_file(directory)
    source = attached()
    assert claim_is_kept()
    assert set_level(level) == "contended"
    until(lambda: not claim_is_kept(), "the end of the claim")
    snapshot = source.scan()
    assert snapshot.level == level
    assert page_of(path).claim_pid == 0
    assert any("is dormant" in note for note in snapshot.notes) is (level == "dormant")
    source.close()


@pytest.mark.usefixtures("hurried")
def test_a_stopped_reader_renews_its_lapsed_claim(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = dormant_file(directory)
    monkeypatch.setattr(control, "SURELY_VALID_S", 0.0)  # every claim is old enough to have lapsed
    source = attached()
    set_level("dormant")
    until(lambda: page_of(path).claim_pid == os.getpid(), "a new claim")
    until(lambda: page_of(path).mode & 0xFF == lib.LT_LEVEL_CONTENDED, "the level with it")
    source.close()


def test_a_level_that_another_process_sets_is_seen_at_the_next_scan(directory: Path) -> None:
    SharedFile().save(directory)
    source = attached()
    for level in LEVELS:
        set_level(level)
        assert source.scan().level == level
    source.close()


def test_the_source_sets_the_level_and_returns_the_former_level(directory: Path) -> None:
    path = SharedFile().save(directory)
    source = attached()
    assert source.set_level("all") == "contended"
    assert source.set_level("dormant") == "all"
    page = page_of(path)
    assert (page.mode, page.base_level) == (2 << 8, lib.LT_LEVEL_DORMANT)
    assert source.scan().level == "dormant"
    source.close()


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.EACCES, "belongs to user .*; run locktop as that user or as root$"),
        (errno.EROFS, "read-only file system$"),
    ],
)
def test_an_error_says_why_the_level_cannot_be_set(
    directory: Path, monkeypatch: pytest.MonkeyPatch, number: int, says: str
) -> None:
    dormant_file(directory)
    real = os.open

    def open_to_read(name: str, flags: int, *more: int, dir_fd: int | None = None) -> int:
        if flags & os.O_ACCMODE != os.O_RDONLY:
            raise OSError(number, os.strerror(number))
        return real(name, flags, *more, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", open_to_read)
    source = attached()
    with pytest.raises(LocktopError, match=f"^cannot set the level: .*{says}"):
        source.set_level("all")
    (note,) = source.scan().notes
    assert note.startswith("the process is dormant and cannot be woken: ")
    source.close()


@pytest.mark.parametrize(
    ("base_level", "epoch", "level", "complete"),
    [
        (lib.LT_LEVEL_CONTENDED, 1, lib.LT_LEVEL_CONTENDED, True),
        (lib.LT_LEVEL_COUNTING, 1, lib.LT_LEVEL_COUNTING, True),
        (lib.LT_LEVEL_CONTENDED, 2, lib.LT_LEVEL_CONTENDED, False),
        (lib.LT_LEVEL_DORMANT, 1, lib.LT_LEVEL_DORMANT, False),
        (lib.LT_LEVEL_DORMANT, 2, lib.LT_LEVEL_CONTENDED, False),
    ],
)
def test_a_snapshot_says_if_counting_began_late(
    directory: Path, base_level: int, epoch: int, level: int, complete: bool
) -> None:
    file = SharedFile()
    file.control.mode, file.control.base_level = epoch << 8 | level, base_level
    file.save(directory)
    source = attached()
    snapshot = source.scan()
    assert snapshot.complete is complete
    assert any("was dormant for a time" in note for note in snapshot.notes) is not complete
    source.close()
