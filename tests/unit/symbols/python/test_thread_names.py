"""The names of this process's own threads."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from locktop.collector.symbols.python.thread_names import ThreadNameReader

TID = "_native_id"  # an attribute of a thread


@contextmanager
def running(*names: str) -> Iterator[list[threading.Thread]]:
    stop = threading.Event()
    threads = [threading.Thread(target=stop.wait, name=name) for name in names]
    for thread in threads:
        thread.start()
    try:
        yield threads
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_threads_have_their_names() -> None:
    with running("worker-1", "名前", "a\x1b[31mb") as threads:
        reader = ThreadNameReader(os.getpid())
        found = reader.read()
        names = [found.get(thread.native_id or 0) for thread in threads]
    assert reader.is_python
    assert names[:2] == ["worker-1", "名前"]
    assert names[2] is not None
    assert "\x1b" not in names[2], "no control code of the process gets out"


def test_a_name_is_read_anew() -> None:
    reader = ThreadNameReader(os.getpid())
    with running("before") as (thread,):
        assert reader.read()[thread.native_id or 0] == "before"
        thread.name = "after"
        assert reader.read()[thread.native_id or 0] == "after"
    assert thread.native_id not in reader.read()


def test_two_objects_of_one_thread_give_no_name() -> None:
    """So it is under gevent, whose greenlets take the places of threads."""
    with running("one", "two", "three") as threads:
        own, vars(threads[0])[TID] = threads[0].native_id, threads[1].native_id
        found = ThreadNameReader(os.getpid()).read()
        vars(threads[0])[TID] = own
        names = [found.get(thread.native_id or 0) for thread in threads]
    assert names == [None, None, "three"]


def test_a_program_without_python_has_no_names() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as cat:
        reader = ThreadNameReader(cat.pid)
        assert (reader.read(), reader.is_python) == ({}, False)
        cat.communicate()
    assert reader.read() == {}
