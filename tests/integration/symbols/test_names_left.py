"""A snapshot stands before its names are read, and says how many are left."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support import tool
from support.eventually import until
from support.pythons import PYTHON
from support.scans import full_scan
from support.screen import Screen
from support.targets import StartTarget, Target, source_of

from locktop.collector.analysis import contention_patterns, lock_classes, lock_order_cycles
from locktop.collector.analysis.contention_findings import Finding
from locktop.collector.model import Contents
from locktop.collector.render.text.report import render
from locktop.collector.sources import pipeline
from locktop.collector.sources.attach import attach
from locktop.collector.sources.launch import preload_environment
from locktop.collector.sources.probes.python_stacks import PythonStacks
from locktop.collector.symbols import resolver
from locktop.collector.symbols.dwarf.unit_index import SourceLocation
from locktop.collector.symbols.modules import Module

#: Runs in each Python of the test: functions keep without names until there is a file.
_BLOCKED = """\
import pathlib, time
from locktop.collector.symbols.modules import Module
read = Module.stored_locations
def blocked(self, address):
    while not pathlib.Path({path!r}).exists():
        time.sleep(0.02)
    return read(self, address)
Module.stored_locations = blocked
"""


@pytest.fixture
def no_names(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keeps the resolver from reading any name."""
    over = threading.Event()

    def never(module: Module, address: int) -> tuple[SourceLocation, ...]:
        over.wait()
        return ()

    monkeypatch.setattr(Module, "stored_locations", never)
    yield
    over.set()


def test_the_first_scan_of_a_screen_reads_no_name_and_later_ones_have_all(
    start_target: StartTarget,
) -> None:
    target = start_target("heap_lock_init_sites")
    target.truth()
    source = attach(target.pid)
    try:
        first = source.scan()
        assert first.names_left > 0
        assert not any(frame.function for stack in first.stacks.values() for frame in stack)
        until(lambda: not source.scan().names_left, "all names")
        last = source.scan()
        assert any(frame.function == "want" for stack in last.stacks.values() for frame in stack)
    finally:
        source.close()


def test_a_scan_with_all_names_says_how_many_were_not_read_in_time(
    start_target: StartTarget, no_names: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "NAMES_S", 0.2)
    target = start_target("heap_lock_init_sites")
    truth = target.truth()
    snapshot = full_scan(target.pid)
    assert snapshot.names_left > 0
    said = f"{snapshot.names_left} names were not read in 0.2 s"
    assert any(note.startswith(said) for note in snapshot.notes)
    assert said in render(snapshot)
    assert {lock.address for lock in snapshot.locks} >= {one[0] for one in truth.values()}
    assert lock_classes.find(snapshot.locks) == (), "no class goes by half a name"


def test_a_screen_shows_no_pattern_while_names_are_left(
    start_target: StartTarget, no_names: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some waits are known to be for work only by the names of their functions."""
    searched: list[int] = []

    def find(draft: Contents, *_: object) -> tuple[Finding, ...]:
        searched.append(draft.names_left)
        return ()

    monkeypatch.setattr(contention_patterns, "find", find)
    target = start_target("heap_lock_init_sites")
    target.truth()
    source = attach(target.pid)
    try:
        assert all(source.scan().names_left for _ in range(3))
        assert not searched
        monkeypatch.setattr(pipeline, "NAMES_S", 0.0)
        source.scan(resolve=True)
        assert searched
    finally:
        source.close()


def test_the_lock_orders_are_searched_when_all_names_are_read(
    start_target: StartTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search takes long where there are many locks, and goes by the names of their classes."""
    searches, find = [], lock_order_cycles.find

    def count(
        orders: Any, lives: Any, facts: Any, *others: Any
    ) -> lock_order_cycles.PotentialDeadlocks:
        searches.append({fact.class_name for fact in facts.values()})
        return find(orders, lives, facts, *others)

    monkeypatch.setattr(lock_order_cycles, "find", count)
    target = start_target("orders_of_other_locks", "classes")
    target.expect("ok")
    source = attach(target.pid)
    try:
        source.scan(resolve=True)
    finally:
        source.close()
    assert [bool(names - {""}) for names in searches] == [False, True], "classes come with names"


@pytest.mark.parametrize("prepared", [True, False], ids=["prepared", "unprepared"])
def test_a_memory_map_that_becomes_old_during_a_scan_hides_no_name(
    prepared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine a scan with all names takes longer than a memory map counts as new."""
    environment = preload_environment(None) if prepared else None
    merge_all = PythonStacks.merge_all

    def merge_later(*arguments: Any) -> None:
        monkeypatch.setattr(resolver, "MAPS_AGE_S", 0.0)
        merge_all(*arguments)

    monkeypatch.setattr(resolver, "MAPS_AGE_S", 1e6)
    monkeypatch.setattr(PythonStacks, "merge_all", merge_later)
    with Target([PYTHON, str(source_of("python_known_stacks"))], environment) as target:
        target.expect("ready")
        with closing(attach(target.pid)) as source:
            snapshot = source.scan(resolve=True)
    names = {lock.name for lock in snapshot.locks if lock.waiters}
    assert "Lock in task (python_known_stacks.py:21)" in names


def test_the_command_waits_for_all_names(start_target: StartTarget) -> None:
    target = start_target("heap_lock_init_sites")
    truth = target.truth()
    document = tool.snapshot(target.pid)
    assert document["names_left"] == 0
    line = truth["connection"][1]
    assert tool.lock_named(
        document, f"mutex made in connection_new (heap_lock_init_sites.c:{line})"
    )


def test_the_screen_shows_locks_before_their_names(
    start_target: StartTarget,
    need: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = start_target("heap_lock_init_sites")
    target.truth()
    may_go_on = tmp_path / "go on"
    (tmp_path / "sitecustomize.py").write_text(_BLOCKED.format(path=str(may_go_on)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with Screen(need("tmux"), "-p", target.pid) as screen:
        first = screen.until(lambda text: "names: " in text, "the number of names that are left")
        assert "mutex 0x" in first
        assert "connection_new" not in first
        may_go_on.touch()
        screen.until(
            lambda text: "made in connection_new" in text and "names: " not in text, "all names"
        )
