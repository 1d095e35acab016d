"""Locks of Python that a thread takes to wait for another thread; this looks like a deadlock.
Each way says "ready", continues at a line, and says "ok" when it is done."""

import os
import queue
import sys
import threading
import time

lock, done = threading.Lock(), threading.Lock()


def at_line(act, *arguments) -> None:
    def waits() -> None:
        os.read(0, 1)
        act(*arguments)

    threading.Thread(target=waits).start()


def workers_come_and_go() -> None:
    for _ in range(20):
        worker = threading.Thread(target=time.sleep, args=(0.005,))
        worker.start()
        worker.join()


def event() -> None:
    """The lock lies at the address of a lock of joined threads."""
    happened = threading.Event()
    at_line(happened.set)
    workers_come_and_go()
    happened.wait()


def jobs() -> None:
    waiting: queue.Queue[int] = queue.Queue()
    at_line(waiting.put, 1)
    workers_come_and_go()
    waiting.get()


def crossed_with(wait) -> None:
    """One thread holds a lock and waits for a third thread; the main thread wants the lock."""
    both = threading.Barrier(2)

    def other() -> None:
        with lock:
            pass
        with lock:
            both.wait()
            wait()

    thread = threading.Thread(target=other)
    thread.start()
    both.wait()
    with lock:
        thread.join()


def simple_queue() -> None:
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    try:
        waiting.get(timeout=0.01)
    except queue.Empty:
        at_line(waiting.put, 1)
    crossed_with(waiting.get)


def signal() -> None:
    with done:
        pass
    done.acquire()
    at_line(done.release)
    crossed_with(done.acquire)


def signal_to_itself() -> None:
    with lock:
        pass
    lock.acquire()
    at_line(lock.release)
    lock.acquire()


def signal_of_one_that_ended() -> None:
    def leaves() -> None:
        with lock:
            pass
        lock.acquire()

    thread = threading.Thread(target=leaves)
    thread.start()
    thread.join()
    at_line(lock.release)
    lock.acquire()


print("ready", flush=True)
globals()[sys.argv[1]]()
print("ok", flush=True)
