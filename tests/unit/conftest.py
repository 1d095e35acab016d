"""Fixtures for the tests of shared files that a test builds, and of screens."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support import shared_file
from support.eventually import until
from support.parsed_styles import keep_parsed
from support.settled import use_turns

from locktop.collector.linux.syscalls import is_futex, parse
from locktop.collector.shm.segment import SharedMemory
from locktop.collector.symbols.resolver import Resolver

# Threads of scipy would wait in this process, which some tests scan.
os.environ["OPENBLAS_NUM_THREADS"] = "1"


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key or a pause ends when the screen has done all work. Apps share parsed styles."""
    use_turns(monkeypatch)
    keep_parsed(monkeypatch)


@pytest.fixture(scope="module", autouse=True)
def apps_collected() -> Iterator[None]:
    """Collect the apps of a module. At its start an app excludes all objects from the collection.

    So the apps of earlier tests would stay in memory.
    """
    yield
    if gc.get_freeze_count():
        gc.unfreeze()
        gc.collect()


@pytest.fixture(autouse=True)
def files_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close the shared files that the test left open: select() takes no descriptor above 1023."""
    opened: list[tuple[SharedMemory, os.stat_result]] = []
    make = SharedMemory.__init__

    def made(memory: SharedMemory, fd: int, path: str) -> None:
        make(memory, fd, path)
        opened.append((memory, os.fstat(fd)))

    monkeypatch.setattr(SharedMemory, "__init__", made)
    yield
    shared_file.forget_mapped()
    for memory, status in opened:
        with suppress(OSError):  # the descriptor is closed
            if os.path.samestat(status, os.fstat(memory.fd)):
                memory.close()


@pytest.fixture(autouse=True)
def resolvers_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """End the threads that read names: a later test may scan this process with all its waits."""
    opened: list[Resolver] = []
    make = Resolver.__init__

    def made(resolver: Resolver, *values: Any, **named: Any) -> None:
        make(resolver, *values, **named)
        opened.append(resolver)

    monkeypatch.setattr(Resolver, "__init__", made)
    yield
    for resolver in opened:
        resolver.close()


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The empty directory where locktop looks for shared files."""
    monkeypatch.setenv("LOCKTOP_DIR", str(tmp_path))
    return tmp_path


def _sleeps_without_limit(tid: int) -> bool:
    """Return whether a thread sleeps at a futex; a wait for the GIL has a time limit."""
    call = parse(Path(f"/proc/self/task/{tid}/syscall").read_bytes())
    return call is not None and is_futex(call.number) and not call.arguments[3]


@pytest.fixture
def second_tid() -> Iterator[int]:
    """The id of a second living thread of this process, which waits for a semaphore of Python."""
    release, started = threading.Event(), threading.Event()
    tids: list[int] = []

    def wait() -> None:
        tids.append(threading.get_native_id())
        started.set()
        release.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    started.wait()
    until(lambda: _sleeps_without_limit(tids[0]), "the wait of the second thread")
    yield tids[0]
    release.set()
    thread.join()
