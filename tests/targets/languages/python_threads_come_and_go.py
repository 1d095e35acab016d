"""A thread waits for good while others start and end as fast as they can. Says its tid."""

import os
import sys
import threading

taken = threading.Lock()
taken.acquire()


def waits() -> None:
    taken.acquire()


def called() -> None:
    waits()


def begins() -> None:
    called()


def short(depth: int) -> None:
    if depth:
        short(depth - 1)


def churn() -> None:
    while True:
        threads = [threading.Thread(target=short, args=(20,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


thread = threading.Thread(target=begins, daemon=True)
thread.start()
while sys._current_frames()[thread.ident].f_code is not waits.__code__:
    pass
threading.Thread(target=churn, daemon=True).start()
print(thread.native_id, flush=True)
sys.stdin.read()
os._exit(0)
