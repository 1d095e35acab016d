"""Fixtures for the tests of shared files that a test builds, and of screens."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.settled import use_turns


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key or a pause ends when the screen has done all work."""
    use_turns(monkeypatch)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The empty directory where locktop looks for shared files."""
    monkeypatch.setenv("LOCKTOP_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def second_tid() -> Iterator[int]:
    """The id of a second living thread of this process."""
    release, started = threading.Event(), threading.Event()
    tids: list[int] = []

    def wait() -> None:
        tids.append(threading.get_native_id())
        started.set()
        release.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    started.wait()
    yield tids[0]
    release.set()
    thread.join()
