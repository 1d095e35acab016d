"""Locks of Python that threads keep until a line comes.

    hands    three threads want the lock, one after the other
    mutex    the same with a mutex of libc
    crossed  two threads hold a lock each and want the other's
    brief    three threads take the lock for a hundredth of a second each, all the time
    given    one thread holds the lock and another thread releases it, then as `hands`

A thread that gets a lock says its tid. With `brief` the main thread does so.
"""

import ctypes
import os
import sys
import threading
import time

lock, other = threading.Lock(), threading.Lock()
both = threading.Barrier(2)


def say() -> None:
    os.write(1, b"%d\n" % threading.get_native_id())  # one write, so that lines do not mix


def keeps() -> None:
    say()
    os.read(0, 1)


def hands() -> None:
    with lock:
        keeps()


def takes_briefly() -> None:
    while True:
        with lock:
            time.sleep(0.01)


def crosses(first: threading.Lock, second: threading.Lock) -> None:
    with first:
        both.wait()
        say()
        with second:
            pass


def takes() -> None:
    lock.acquire()


def gives() -> None:
    lock.release()


class Mutex:
    def __init__(self) -> None:
        self.libc, self.mutex = ctypes.CDLL(None), ctypes.create_string_buffer(64)

    def __enter__(self) -> None:
        self.libc.pthread_mutex_lock(self.mutex)

    def __exit__(self, *_: object) -> None:
        self.libc.pthread_mutex_unlock(self.mutex)


def start(function, *arguments) -> threading.Thread:
    thread = threading.Thread(target=function, args=arguments, daemon=True)
    thread.start()
    return thread


way = sys.argv[1]
if way == "crossed":
    start(crosses, lock, other)
    start(crosses, other, lock)
elif way == "mutex":
    lock = Mutex()
elif way == "brief":
    for _ in range(3):
        start(takes_briefly)
    say()
elif way == "given":
    start(takes).join()
    start(gives).join()
running = [start(hands) for _ in range(3) if way not in ("crossed", "brief")]
for thread in running:
    thread.join()
threading.Event().wait()
