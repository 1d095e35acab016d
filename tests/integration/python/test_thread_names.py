"""The names that Python programs give their threads, with each interpreter of this machine."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import pytest
from support.pythons import all_pythons
from support.targets import PATIENCE_S, Target, source_of

from locktop.collector.model import Snapshot
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source
from locktop.collector.sources.launch import preload_environment

PYTHONS = all_pythons()
KERNEL_NAME = "of-the-kernel"
both_ways = pytest.mark.parametrize("prepared", [True, False], ids=["prepared", "unprepared"])


def start(python: str, prepared: bool, name: str = "python_named_threads") -> Target:
    command = [python, str(source_of(name))]
    return Target(command, preload_environment(None) if prepared else None)


def names(snapshot: Snapshot) -> dict[int, str]:
    return {thread.tid: thread.name for thread in snapshot.threads}


def expected(truth: dict[str, str | None]) -> dict[int, str]:
    return {int(tid): name or KERNEL_NAME for tid, name in truth.items()}


def scan_until_named(source: Source, wanted: dict[int, str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while (found := names(source.scan())) != wanted:
        assert time.monotonic() < deadline, (found, wanted)
        time.sleep(0.02)


@both_ways
@pytest.mark.parametrize("python", PYTHONS, ids=lambda path: Path(path).name)
def test_threads_have_the_names_of_python_at_the_first_scan(python: str, prepared: bool) -> None:
    with start(python, prepared) as target:
        wanted = expected(target.truth())
        with closing(attach(target.pid)) as source:
            # No scan waits for them: the screen has these names in its first picture.
            assert names(source.scan()) == wanted
            target.go_on("later")
            wanted = expected(target.truth())
            scan_until_named(source, wanted)
