"""Threads that went from one wait to another: what a scan reads of them in /proc."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest
from support.eventually import until

from locktop.collector.linux.threads import KernelThread, KernelThreads


def test_the_schedstat_alone_tells_of_a_thread_in_another_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The thread's name shows whether its stat was read."""
    monkeypatch.setattr("locktop.collector.linux.threads.REREAD_SCANS", 1 << 30)
    its, ours = os.pipe()
    answer, says = os.pipe()

    def run() -> None:
        while os.read(its, 1) == b"!":
            os.write(says, b"!")

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    tid = thread.native_id or 0
    name = Path(f"/proc/self/task/{tid}/comm")
    tasks = KernelThreads(os.getpid(), os.getpid())
    name.write_text("first")
    first = tasks.read({tid: (1, 2)})[tid]
    name.write_text("second")

    def after_run(wait: tuple[int, int] | None) -> KernelThread:
        os.write(ours, b"!")
        os.read(answer, 1)
        return tasks.read({tid: wait} if wait else {})[tid]

    moved = after_run((1, 4))
    assert (moved.name, moved.state) == ("first", "S")
    assert moved.runs > first.runs
    assert moved.ran_ns > first.ran_ns
    assert moved.at_s > first.at_s
    assert moved.cpu_s == moved.ran_ns / 1e9
    assert tasks.read({tid: (1, 4)})[tid] is moved
    assert after_run((5, 4)).name == "second"  # another thread with the same id
    name.write_text("third")
    assert after_run(None).name == "third"
    name.write_text("fourth")
    assert after_run((5, 6)).name == "fourth"  # which thread it was is not known
    os.close(ours)
    thread.join()
    while name.exists():  # pthread_join() returns a moment before the kernel removes it
        pass
    assert tid not in tasks.read({tid: (5, 8)})
    tasks.close()
    for pipe in (its, answer, says):
        os.close(pipe)


def test_a_thread_that_replaces_an_ended_one_is_read_at_once() -> None:
    """The number of threads is the same before and after."""
    release, begun = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        release.wait()

    def start() -> threading.Thread:
        begun.clear()
        started = threading.Thread(target=wait)
        started.start()
        begun.wait()
        return started

    first = start()
    tasks = KernelThreads(os.getpid(), os.getpid())
    before = tasks.read({})
    assert first.native_id in before
    assert tasks.read({}).keys() == before.keys()
    release.set()
    first.join()
    while Path(f"/proc/self/task/{first.native_id}").exists():
        pass
    release.clear()
    second = start()
    found = tasks.read({})
    release.set()
    second.join()
    assert found.keys() == before.keys() - {first.native_id} | {second.native_id}
    # Ids begin again at small ones, so a later thread may have a smaller id.
    assert sorted(tasks.living) == sorted(found)
    tasks.close()


def test_a_process_ends_when_it_was_killed_and_not_before() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        tasks = KernelThreads(process.pid, process.pid)
        assert not tasks.is_process_ending()
        process.kill()
        # The signal is no longer pending for a moment before the process exits.
        until(tasks.is_process_ending, "the killed process ends")
    assert tasks.is_process_ending(), "there is no such process any more"
    tasks.close()
