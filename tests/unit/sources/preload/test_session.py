"""One program of a preloaded process: stacks by id, and which holders still hold their locks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.shared_file import SharedFile, key
from unit.builders import records

from locktop.collector.model import Frame, Kind, Lock
from locktop.collector.native import lib
from locktop.collector.shm.segment import SharedMemory
from locktop.collector.sources.preload.session import PreloadSession
from locktop.collector.sources.probes import native_stacks
from locktop.collector.sources.probes.holder_activity import HolderProbe
from locktop.collector.sources.watched_process import WatchedProcess

HOLDER, OTHER = 11, 12


class Sessions:
    """A file with a holder of a mutex and of a semaphore, and sessions over the file."""

    def __init__(self, directory: Path) -> None:
        self.file = file = SharedFile()
        self.mutex = file.add_lock(lib.LT_KIND_MUTEX, 0x1000)
        self.sem = file.add_lock(lib.LT_KIND_SEM, 0x2000)
        self.stack = file.add_stack([0x10, 0x20])
        self.block = file.add_thread(HOLDER)
        file.hold(self.block, self.mutex, key(lib.LT_KIND_MUTEX, 0x1000))
        sem = {"key": key(lib.LT_KIND_SEM, 0x2000), "lock": self.sem, "acquisitions": 2,
               "signals": 1}  # fmt: skip
        file.give_slots(self.block, 4, [sem])
        file.wait(file.add_thread(OTHER), self.mutex, key(lib.LT_KIND_MUTEX, 0x1000))
        self.path = file.save(directory)
        self.watched = WatchedProcess(os.getpid())
        self.opened: list[PreloadSession] = []

    def open(self) -> PreloadSession:
        memory = SharedMemory(os.open(self.path, os.O_RDONLY), str(self.path))
        self.opened.append(PreloadSession(self.watched, memory, None, False))
        return self.opened[-1]

    def lock(self, id_: int, kind: Kind) -> Lock:
        return records.lock(id_, "l", kind)


@pytest.fixture
def sessions(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sessions]:
    found = Sessions(directory)
    yield found
    for session in found.opened:
        session.close()
    found.watched.close()


def test_waits_are_known_by_the_birth_of_the_thread_and_the_number_of_the_wait(
    sessions: Sessions,
) -> None:
    session = sessions.open()
    expected = {OTHER: (2, 2)}
    assert session.read_waits() == expected
    session.keep_waits(session.reader.read().newest)
    assert session.waits == expected
    assert session.newest.keys() == {HOLDER, OTHER}


def test_only_a_thread_that_lists_the_lock_still_holds_it(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    still_holds = []
    real = HolderProbe.__init__

    def made(self: HolderProbe, *arguments: object) -> None:
        still_holds.append(arguments[-1])
        real(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(HolderProbe, "__init__", made)
    session = sessions.open()
    (query,) = still_holds
    assert callable(query)
    mutex = sessions.lock(sessions.mutex, Kind.MUTEX)
    sem = sessions.lock(sessions.sem, Kind.SEM)
    assert query([(HOLDER, mutex)]) == set()  # no scan has shown the thread yet
    session.keep_waits(session.reader.read().newest)
    assert query([(HOLDER, mutex), (OTHER, mutex)]) == {sessions.mutex}
    assert query([(OTHER, mutex)]) == set()
    assert query([(HOLDER, sem)]) == {sessions.sem}
    assert query([(HOLDER, sem), (HOLDER, mutex)]) == {sessions.sem, sessions.mutex}
    assert query([(OTHER, sem)]) == set()
    sessions.block.held_top = 0
    sessions.path.write_bytes(sessions.file.data)
    assert query([(HOLDER, mutex)]) == set()


def test_a_stack_is_a_recorded_one_or_an_unwound_one_by_its_id(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    unwound = (Frame(0x99, "f", None, None, "app", 0),)
    monkeypatch.setattr(
        native_stacks.NativeStacks, "frames",
        lambda _, stack: unwound if stack == native_stacks.FIRST_ID else (),
    )  # fmt: skip
    session = sessions.open()
    recorded = session.python.frames(sessions.stack)
    assert [frame.address for frame in recorded] == [0x10, 0x20]
    assert session.python.frames(native_stacks.FIRST_ID) == unwound


@pytest.mark.parametrize("hurried", [False, True])
def test_a_new_program_of_a_hurried_source_waits_for_no_names(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch, hurried: bool
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(PreloadSession, "hurry", lambda _: calls.append("hurry"))
    sessions.watched.hurried = hurried
    sessions.open()
    assert calls == (["hurry"] if hurried else [])
