"""Threads of Python that never sleep fight for the GIL. Another one waits for a lock for good."""

import os
import sys
import threading

taken = threading.Lock()
taken.acquire()


def burns() -> None:
    while True:
        pass


def waits_for_lock() -> None:
    taken.acquire()


for target in (burns, burns, burns, waits_for_lock):
    threading.Thread(target=target, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
os._exit(0)
