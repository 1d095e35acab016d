"""Threads take turns at one lock: each thread waits for a fraction of a second, again and again.
Says "ready"."""

import threading
import time

THREADS = 4
HELD_S = 0.2
BETWEEN_S = 0.02

orders = threading.Lock()


def handles() -> None:
    while True:
        with orders:
            time.sleep(HELD_S)
        time.sleep(BETWEEN_S)


for _ in range(THREADS):
    threading.Thread(target=handles, daemon=True).start()
print("ready", flush=True)
input()
