"""A thread holds a lock and receives from a silent socket; other threads wait for the lock. Says
the tids of the waiters, then the tid of the holder. Ends with stdin."""

import json
import os
import socket
import sys
import threading

lock, has_it = threading.Lock(), threading.Event()
ours, theirs = socket.socketpair()
tids: list[int] = []


def fetches() -> object:
    return ours.recv(1)


def has_the_lock() -> None:
    tids.append(threading.get_native_id())
    with lock:
        has_it.set()
        fetches()


def wants_the_lock() -> None:
    tids.append(threading.get_native_id())
    with lock:
        pass


for target in has_the_lock, wants_the_lock, wants_the_lock:
    threading.Thread(target=target, daemon=True).start()
    has_it.wait()
while len(tids) < 3:
    pass
print(json.dumps({"has": tids[0], "want": tids[1:], "fd": ours.fileno()}), flush=True)
sys.stdin.read()
os._exit(0)
