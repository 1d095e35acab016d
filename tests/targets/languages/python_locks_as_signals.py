"""Locks of Python's that are got to wait for another thread, in ways that look like a deadlock.
Each says "ready", goes on when it hears a line, and says "ok" when it is done."""

import os
import queue
import sys
import threading
import time

lock, done = threading.Lock(), threading.Lock()


def when_told(act, *arguments) -> None:
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
    """Its lock lies where those of threads lay that were joined."""
    happened = threading.Event()
    when_told(happened.set)
    workers_come_and_go()
    happened.wait()


def jobs() -> None:
    waiting: queue.Queue[int] = queue.Queue()
    when_told(waiting.put, 1)
    workers_come_and_go()
    waiting.get()


def crossed_with(wait) -> None:
    """One thread has a lock and waits for what a third one does; the main thread wants the lock."""
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
        when_told(waiting.put, 1)
    crossed_with(waiting.get)


def signal() -> None:
    with done:
        pass
    done.acquire()
    when_told(done.release)
    crossed_with(done.acquire)


def signal_to_itself() -> None:
    with lock:
        pass
    lock.acquire()
    when_told(lock.release)
    lock.acquire()


def signal_of_one_that_ended() -> None:
    def leaves() -> None:
        with lock:
            pass
        lock.acquire()

    thread = threading.Thread(target=leaves)
    thread.start()
    thread.join()
    when_told(lock.release)
    lock.acquire()


print("ready", flush=True)
globals()[sys.argv[1]]()
print("ok", flush=True)
