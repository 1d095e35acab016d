"""An incident: a Python service keeps its lock while it waits for an answer of a payment provider.

The provider is a socket that never answers. Says "ready" when the other threads wait for the lock.
Ends with stdin.
"""

import os
import socket
import sys
import threading

orders_lock, is_held = threading.Lock(), threading.Event()
provider, _silent = socket.socketpair()
waiters: list[int] = []


def ask_payment_provider() -> bytes:
    return provider.recv(1)


def charge_order() -> None:
    with orders_lock:
        is_held.set()
        ask_payment_provider()


def submit_order() -> None:
    waiters.append(threading.get_native_id())
    with orders_lock:
        pass


def is_asleep(tid: int) -> bool:
    with open(f"/proc/self/task/{tid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "S"


threading.Thread(target=charge_order, daemon=True).start()
is_held.wait()
for _ in range(4):
    threading.Thread(target=submit_order, daemon=True).start()
while len(waiters) < 4 or not all(map(is_asleep, waiters)):
    pass
print("ready", flush=True)
sys.stdin.read()
os._exit(0)
