"""A thread waits for work at a queue that C code iterates, as threads of multiprocessing.Pool do.

Prints "ready". Ends with its input.
"""

from __future__ import annotations

import queue
import sys
import threading

tasks: queue.SimpleQueue[object] = queue.SimpleQueue()


def handle_tasks() -> None:
    for _ in iter(tasks.get, None):
        pass


threading.Thread(target=handle_tasks, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
