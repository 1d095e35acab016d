"""Locks of Python that a thread takes to wait for another thread; this looks like a deadlock.
Each way says "ready", continues at a line, and says "ok" when it is done."""

import os
import queue
import sys
import threading
import time

lock, done = threading.Lock(), threading.Lock()
FEW, MANY = 15, 40


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


def simple_queue_of_one() -> None:
    """One thread gets from the empty queue and puts, again and again: the counts of a lock."""
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()

    def get_now() -> None:
        try:
            waiting.get_nowait()
        except queue.Empty:
            pass

    for _ in range(MANY):
        get_now()
        waiting.put(1)
        waiting.get()
    get_now()
    at_line(waiting.put, 1)
    waiting.get()


def import_lock() -> None:
    """A thread waits for a module that another thread imports."""
    imports, main = threading.Barrier(2), threading.current_thread()

    class Finder:
        def find_spec(self, name, *_):
            if name == "locktop_test_module" and threading.current_thread() is not main:
                imports.wait()
                os.read(0, 1)

    def begin() -> None:
        try:
            import locktop_test_module  # noqa: F401
        except ImportError:
            pass

    sys.meta_path.insert(0, Finder())
    threading.Thread(target=begin).start()
    imports.wait()
    begin()


def signal_after_use() -> None:
    """The lock was a lock of this thread for some time."""
    for _ in range(FEW):
        with lock:
            pass
    lock.acquire()
    at_line(lock.release)
    lock.acquire()


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
