"""Healthy threads that hold Python's locks for long, in ways that look like a deadlock.

They take two locks in one order, hand locks over, leave blocks, wait in conditions and queues, and
share locks with asyncio and other processes. Each hold ends after two seconds at the most.
"""

import asyncio
import ctypes
import multiprocessing
import queue
import random
import sys
import threading
import time

outer, inner, owned, handed = (
    threading.Lock(), threading.Lock(), threading.RLock(), threading.Lock()
)  # fmt: skip
condition = threading.Condition(threading.Lock())
messages = queue.Queue(2)
gil_and_more = threading.Lock()
chance = random.Random(int(sys.argv[1]) if sys.argv[1:] else 1)


def holds():
    time.sleep(chance.choice((0.001, 0.02, 0.5, 1.5)))


def in_order():
    with outer:
        holds()
        with inner, owned:
            holds()


def inner_alone():
    with inner, owned, owned:
        holds()


def left_before():
    """The first block was left, and its values lie above the top of the stack."""
    with inner:
        pass
    with outer:
        holds()


def in_a_generator():
    def values():
        with owned:
            yield holds()

    list(values())
    with outer:
        holds()


def hands_over():
    """A thread takes the lock, and another one releases it."""
    handed.acquire()
    holds()
    other = threading.Thread(target=handed.release)
    other.start()
    other.join()


def takes_what_is_handed_over():
    with handed, inner:
        holds()


def waits_in_condition():
    with condition:
        condition.wait(0.7)
        with inner:
            holds()


def notifies():
    with condition:
        holds()
        condition.notify_all()


def puts():
    messages.put(1)
    with messages.mutex:
        holds()


def gets():
    messages.get()
    holds()


def keeps_the_gil():
    with gil_and_more:
        ctypes.PyDLL(None).usleep(chance.choice((1000, 200_000, 1_200_000)))


def computes():
    with gil_and_more:
        return sum(range(300_000))


async def shares(lock):
    async with lock:
        await asyncio.sleep(0.3)


def runs_tasks():
    async def main():
        lock = asyncio.Lock()
        await asyncio.gather(*(shares(lock) for _ in range(3)))

    asyncio.run(main())


def forever(function, *args):
    while True:
        function(*args)


def with_other_process(lock):
    with lock:
        time.sleep(0.4)


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    between = context.Lock()
    context.Process(target=forever, args=(with_other_process, between), daemon=True).start()
    functions = (
        in_order, in_order, inner_alone, left_before, in_a_generator, hands_over,
        takes_what_is_handed_over, waits_in_condition, notifies, puts, gets, keeps_the_gil,
        computes, runs_tasks,
    )  # fmt: skip
    for function in functions:
        threading.Thread(target=forever, args=(function,), daemon=True).start()
    threading.Thread(target=forever, args=(with_other_process, between), daemon=True).start()
    print("ready", flush=True)
    threading.Event().wait()
