"""Deadlocks of Python locks. A thread says its tid before it waits for good.

    crossed   two threads hold a lock each and want the other's
    rlocks    the same with threading.RLock
    itself    a thread wants a lock again that it has; another thread could release the lock
    once      the same with a lock that no thread used before
    forked    a child wants a lock that another thread of the parent held at the fork
    forked_rlock, forked_queue    the same with threading.RLock, and with the lock of queue.Queue

All locks lie at addresses that had other locks before, and threads used each lock many times.
"""

import os
import queue
import sys
import threading

USES = 100
both = threading.Barrier(2)


def at_used_addresses(make, count):
    """Make locks where locks of ended waits lay: such a lock was released by another thread."""
    for _ in range(50):
        happened = threading.Event()
        setter = threading.Thread(target=happened.set)
        setter.start()
        happened.wait()
        setter.join()
    return [make() for _ in range(count)]


def use(*locks) -> None:
    for lock in locks:
        for _ in range(USES):
            with lock:
                pass


def say() -> None:
    os.write(1, b"%d\n" % threading.get_native_id())  # one write, so that lines do not mix


def crosses(first, second) -> None:
    use(first, second)
    both.wait()
    with first:
        both.wait()
        say()
        with second:
            pass


def crossed(make) -> None:
    first, second = at_used_addresses(make, 2)
    threading.Thread(target=crosses, args=(first, second), daemon=True).start()
    threading.Thread(target=crosses, args=(second, first), daemon=True).start()


def wants_again(lock) -> None:
    with lock:
        say()
        with lock:
            pass


def itself(uses: bool) -> None:
    (lock,) = at_used_addresses(threading.Lock, 1)

    def run() -> None:
        if uses:
            use(lock)
        wants_again(lock)

    threading.Thread(target=run, daemon=True).start()


def wants_in_child(lock) -> None:
    with lock:
        pass


def forked(lock, wants) -> None:
    def keeps() -> None:
        use(lock)
        with lock:
            both.wait()
            threading.Event().wait()

    threading.Thread(target=keeps, daemon=True).start()
    both.wait()
    if os.fork() == 0:
        say()
        wants(lock)


def fork_with(way: str) -> None:
    if way == "forked_queue":
        messages = queue.Queue()
        forked(messages.mutex, lambda _: messages.put(1))
    else:
        make = threading.RLock if way == "forked_rlock" else threading.Lock
        (lock,) = at_used_addresses(make, 1)
        forked(lock, wants_in_child)


def run(way: str) -> None:
    if way.startswith("forked"):
        fork_with(way)
    elif way in ("itself", "once"):
        itself(way == "itself")
    else:
        crossed({"crossed": threading.Lock, "rlocks": threading.RLock}[way])


run(sys.argv[1])
threading.Event().wait()
