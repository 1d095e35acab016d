"""Threads of three functions wait for one lock, again and again. Two of the functions have the same
native stack; the third one is called through C. Says "ready". Each line on stdin requests the
seconds that each function has waited, with the waits that go on."""

import json
import os
import sys
import threading
import time

HELD_S = 0.3
PRICING, REFUNDING = 3, 1  # threads

orders = threading.Lock()
waited = dict.fromkeys(("price_order", "refund_order", "audit_order"), 0.0)
waiting = {}  # by thread: function, begin


def got_lock() -> None:
    function, began = waiting.pop(threading.get_ident())
    waited[function] += time.monotonic() - began


def price_order(began: float) -> None:
    waiting[threading.get_ident()] = "price_order", began
    with orders:
        got_lock()
        time.sleep(HELD_S)


def refund_order(began: float) -> None:
    waiting[threading.get_ident()] = "refund_order", began
    with orders:
        got_lock()
        time.sleep(HELD_S)


def audit_order(began: float) -> float:
    waiting[threading.get_ident()] = "audit_order", began
    with orders:
        got_lock()
        time.sleep(HELD_S)
    return began


def serve(handle: object) -> None:
    while True:
        handle(time.monotonic())


def audit() -> None:
    while True:
        sorted([time.monotonic()], key=audit_order)


for handle, count in ((price_order, PRICING), (refund_order, REFUNDING)):
    for _ in range(count):
        threading.Thread(target=serve, args=(handle,), daemon=True).start()
threading.Thread(target=audit, daemon=True).start()
print("ready", flush=True)
for _ in sys.stdin:
    sums = waited.copy()
    for function, began in list(waiting.values()):
        sums[function] += time.monotonic() - began
    print(json.dumps(sums), flush=True)
os._exit(0)
