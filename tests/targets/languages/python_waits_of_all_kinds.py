"""One thread waits for good in each of Python's ways, and is called after that way. Prints a JSON
object, {thread id: way}, when all of them sleep; ends with its input."""

import concurrent.futures
import json
import os
import queue
import sys
import threading
import time

pool = concurrent.futures.ThreadPoolExecutor(1)
tasks = queue.Queue()
event = threading.Event()
lock = threading.Lock()
owned = threading.RLock()
ids = {}


def pool_worker():
    ids[threading.get_native_id()] = "pool"


def takes_lock():
    lock.acquire()


def takes_owned():
    with owned:
        pass


def by_key(_):
    return lock.acquire()


WAYS = {
    "queue": tasks.get,
    "event": event.wait,
    "lock": takes_lock,
    "rlock": takes_owned,
    "sort": lambda: sorted([1, 2], key=by_key),
    "sleep": lambda: time.sleep(1000000),
}


def begin(way, function):
    def run():
        ids[threading.get_native_id()] = way
        function()

    thread = threading.Thread(target=run, daemon=True, name=way)
    thread.start()
    return thread


def sleeps(tid):
    with open(f"/proc/self/task/{tid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "S"


pool.submit(pool_worker).result()
lock.acquire()
owned.acquire()
threads = [begin(way, function) for way, function in WAYS.items()]
begin("join", threads[-1].join)
asleep = 0
while asleep < 20:  # in turn, each time
    time.sleep(0.005)
    asleep = asleep + 1 if len(ids) == 8 and all(map(sleeps, ids)) else 0
print(json.dumps(ids), flush=True)
sys.stdin.read()
os._exit(0)
