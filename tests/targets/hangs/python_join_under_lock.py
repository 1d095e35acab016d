"""A thread joins another one and holds a lock meanwhile.

The argument says what the other thread does. With "wants" it wants the lock. With "reads" it reads
from stdin, and nobody wants the lock.
"""

import sys
import threading

lock = threading.Lock()
holds = threading.Event()


def worker() -> None:
    holds.wait()
    if sys.argv[1] == "wants":
        with lock:
            pass
    else:
        sys.stdin.readline()


def stop_worker() -> None:
    thread = threading.Thread(target=worker, name="worker", daemon=True)
    thread.start()
    with lock:
        holds.set()
        print("ready", flush=True)
        thread.join()


stop_worker()
