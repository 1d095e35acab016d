"""A crowd of threads waits for one lock of Python, and as many wait for work.

Prints the thread id of the holder when all of them sleep; ends with its input.
"""

import json
import os
import sys
import threading

CROWD = 150
lock = threading.Lock()
work = threading.Event()
reader, _ = os.pipe()
tids = []
begun = threading.Semaphore(0)


def run(function):
    tids.append(threading.get_native_id())
    begun.release()
    function()


def take():
    with lock:
        pass


def hold():
    with lock:
        begun.release()
        os.read(reader, 1)  # nothing comes


def start(function):
    threading.Thread(target=run, args=[function], daemon=True).start()
    begun.acquire()


def sleeps(tid):
    with open(f"/proc/self/task/{tid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "S"


for _ in range(CROWD):
    start(work.wait)
start(hold)
begun.acquire()
holder = tids[-1]
for _ in range(CROWD):
    start(take)
asleep = 0
while asleep < 20:  # in turn, each time
    asleep = asleep + 1 if all(map(sleeps, tids)) else 0
print(json.dumps({"holder": holder}), flush=True)
sys.stdin.read()
os._exit(0)
