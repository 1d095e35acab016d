"""When the names of Python's threads are read, and which threads get them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from unit.builders import records

from locktop.collector.model import ThreadState
from locktop.collector.sources.probes.python_thread_names import PythonThreadNames
from locktop.collector.symbols.python.thread_names import ThreadNameReader


class Program:
    """Has names of threads, counts how often they are read, and scans once a second."""

    def __init__(self, names: Mapping[int, str], took_s: float = 0.0) -> None:
        self.names = dict(names)
        self.took_s = took_s
        self.readings = 0
        self.is_python = bool(names)
        self.now = 100.0
        self.probe = PythonThreadNames(cast("ThreadNameReader", self), lambda: self.now)

    def read(self) -> dict[int, str]:
        self.readings += 1
        self.now += self.took_s
        return dict(self.names)

    def scan(self, lives: Mapping[int, int], may_run_python: bool = False) -> dict[int, str]:
        self.now += 1.0
        threads = tuple(records.thread(tid, "comm", ThreadState.OTHER) for tid in lives)
        draft = records.snapshot(threads, ()).draft()
        self.probe.annotate(draft, lives, may_run_python)
        return {thread.tid: thread.name for thread in draft.threads}


def test_threads_get_their_names_and_others_keep_those_of_the_kernel() -> None:
    program = Program({1: "MainThread", 2: "worker"})
    assert program.scan({1: 1, 2: 1, 3: 1}) == {1: "MainThread", 2: "worker", 3: "comm"}


def test_a_default_name_yields_to_a_name_of_the_kernel_unless_that_is_its_beginning() -> None:
    """CPython 3.14 gives the kernel the names of its threads, which cuts them."""
    names = {1: "Thread-1 (submit_orders)", 2: "Thread-2 (submit_orders)"}
    kernel = {1: "Thread-1 (submi", 2: "io-thread"}
    threads = tuple(records.thread(tid, kernel[tid], ThreadState.OTHER) for tid in kernel)
    draft = records.snapshot(threads, ()).draft()
    Program(names).probe.annotate(draft, {1: 1, 2: 1}, may_run_python=True)
    assert [thread.name for thread in draft.threads] == [names[1], kernel[2]]


def test_ended_threads_of_a_program_without_readable_names_are_forgotten() -> None:
    program = Program({})
    for _ in range(5):
        program.scan({5: 1}, may_run_python=True)
    readings = program.readings
    program.scan({6: 1}, may_run_python=True)
    program.scan({5: 1}, may_run_python=True)
    assert program.readings == readings + 2, "the first thread is as good as new"


def test_known_names_are_not_read_again_for_some_time() -> None:
    program = Program({1: "one"})
    for _ in range(5):
        program.scan({1: 1})
    assert program.readings == 1
    program.names[1] = "renamed"
    assert [program.scan({1: 1})[1] for _ in range(10)][-1] == "renamed"
    assert program.readings == 2


def test_a_new_thread_is_read_at_once_and_a_nameless_one_a_few_times() -> None:
    program = Program({1: "one"})
    program.scan({1: 1})
    program.names[2] = "two"
    assert program.scan({1: 1, 2: 1})[2] == "two"
    assert program.readings == 2
    for _ in range(6):
        program.scan({1: 1, 2: 1, 3: 1})
    assert program.readings == 5


def test_another_thread_with_the_tid_does_not_get_the_name_of_the_former() -> None:
    program = Program({1: "one"})
    program.scan({1: 1})
    program.names = {}
    assert program.scan({1: 2}) == {1: "comm"}


def test_a_dear_reading_is_not_made_in_each_scan() -> None:
    program = Program({1: "one"}, took_s=0.5)
    for life in range(1, 10):
        program.scan({1: life})
    assert program.readings == 1


def test_a_program_without_python_is_read_once_until_python_shows_up() -> None:
    program = Program({})
    for _ in range(5):
        assert program.scan({1: 1}) == {1: "comm"}
    assert program.readings == 1
    program.names[1] = "embedded"
    assert program.scan({1: 1}, may_run_python=True) == {1: "embedded"}


def test_the_threads_of_a_process_that_has_ended_keep_their_names() -> None:
    program = Program({1: "one"})
    program.scan({1: 1})
    draft = records.snapshot((records.thread(1, "comm", ThreadState.OTHER),), ()).draft()
    program.probe.apply(draft, {1: 1})
    assert [thread.name for thread in draft.threads] == ["one"]
    assert program.readings == 1
