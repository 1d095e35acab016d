"""Locks of multiprocessing, between two processes that this one starts. Prints their ids as JSON.

    python_process_locks.py cross|queue

cross: each of the processes has one of two locks, and wants the other one.
queue: both wait for work at one queue, so that one of them waits for the lock of the queue.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time

context = multiprocessing.get_context("fork")
first, second = context.Lock(), context.Lock()
met = context.Barrier(2)
tasks = context.Queue()


def crosses(has: object, wants: object) -> None:
    with has:
        met.wait()
        with wants:
            pass


def works() -> None:
    tasks.get()


def sleeps(pid: int) -> bool:
    """Return whether a process waits for a lock, or reads from the queue."""
    with open(f"/proc/{pid}/syscall") as file:
        call = file.read().split()[0]
    return call in (FUTEX, READ)


FUTEX, READ = ("202", "0") if os.uname().machine == "x86_64" else ("98", "63")
if sys.argv[1] == "cross":
    processes = [
        context.Process(target=crosses, args=locks) for locks in ((first, second), (second, first))
    ]
else:
    processes = [context.Process(target=works) for _ in range(2)]
for process in processes:
    process.start()
pids = [process.pid for process in processes]
# A futex call may be a wait of the start, so it must last.
seen = 0
while seen < 20:
    seen = seen + 1 if all(map(sleeps, pids)) else 0
    time.sleep(0.05)
print(json.dumps(pids), flush=True)
sys.stdin.read()
for process in processes:
    process.kill()
os._exit(0)
