"""CPython: threads, queues and events use semaphores, the interpreter lock uses a condition."""

from __future__ import annotations

import sys

import pytest
from support import watched
from support.pythons import has_mutexes

PROGRAM = """
import queue, threading
tasks, results, lock, total = queue.Queue(8), queue.Queue(), threading.Lock(), 0

def work():
    global total
    while (number := tasks.get()) is not None:
        with lock:
            total += number
        results.put(number * number)

threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads:
    thread.start()
for number in range(20000):
    tasks.put(number)
for _ in threads:
    tasks.put(None)
for thread in threads:
    thread.join()
print(total, results.qsize(), sum(results.get() for _ in range(20000)))
"""


@pytest.mark.parametrize("level", ["contended", "all"])
def test_threads_of_python(level: str) -> None:
    command = [sys.executable, "-c", PROGRAM]
    without, seen = watched.run(command), watched.run(command, level)
    squares = sum(number * number for number in range(20000))
    wanted = f"{sum(range(20000))} 20000 {squares}\n"
    assert (without.status, without.output) == (seen.status, seen.output) == (0, wanted)
    assert watched.threads_seen(seen) == 7
    assert watched.total(seen.last, "wait_s", "cond") > 0, "waits for the interpreter lock"
    if not has_mutexes(sys.executable):  # a PyMutex takes no lock of libc unless a thread waits
        assert watched.total(seen.last, "acquisitions", "sem") >= 3 * 20000
