"""A thread without the GIL keeps the lock inside a list, and another one wants it.

``list.sort`` has that lock while it calls the key function. A function of C that is called through
``ctypes.PyDLL`` sleeps and stays attached to the interpreter, so the lock is not given away.
Prints the tids of both threads, the sleeper first; ends with its input.
"""

import ctypes
import os
import sys
import threading

FOR_LONG = 1_000_000  # seconds
values = [FOR_LONG]
libc = ctypes.PyDLL(None)


def say():
    os.write(1, b"%d\n" % threading.get_native_id())


def sorts():
    say()
    values.sort(key=libc.sleep)


def appends():
    while not is_locked():
        pass
    say()
    values.append(2)


def is_locked():
    """Return whether the list is being sorted: it looks empty meanwhile."""
    return not len(values)


threading.Thread(target=sorts, daemon=True, name="sorts").start()
threading.Thread(target=appends, daemon=True, name="appends").start()
sys.stdin.read()
os._exit(0)
