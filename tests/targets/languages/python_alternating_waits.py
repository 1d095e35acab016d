"""A thread waits in two functions in turn, each for a lock of its own, until the end of stdin. A
second thread releases the locks now and then."""

import os
import random
import sys
import threading
import time

locks = [threading.Lock(), threading.Lock()]
for lock in locks:
    lock.acquire()


def waits_for_first() -> None:
    locks[0].acquire()


def waits_for_second() -> None:
    locks[1].acquire()


def turns() -> None:
    while True:
        waits_for_first()
        waits_for_second()


def lets_go_on() -> None:
    turn = 0
    while True:
        time.sleep(random.choice([0.001, 0.01, 0.4, 1.6]))
        locks[turn].release()
        while not locks[turn].locked():  # the thread takes the lock again at once
            time.sleep(0.001)
        turn = 1 - turn


thread = threading.Thread(target=turns, daemon=True)
thread.start()
threading.Thread(target=lets_go_on, daemon=True).start()
print(thread.native_id, flush=True)
sys.stdin.read()
os._exit(0)
