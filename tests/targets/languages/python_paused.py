"""A thread without the GIL stops all threads, and one in C code stays attached: the pause lasts.

``gc.collect`` waits for the main thread, which reads the input in a function of C. ``wakes`` comes
back from a short sleep, and must not go on. Prints the tid of ``wakes``; ends with its input.
"""

import ctypes
import gc
import os
import threading
import time

libc = ctypes.PyDLL(None)  # calls its functions without a detach
woken = threading.Event()


def wakes():
    os.write(1, b"%d\n" % threading.get_native_id())
    woken.set()
    while True:
        time.sleep(0.001)


def collects():
    woken.wait()
    while True:
        gc.collect()


for function in (wakes, collects):
    threading.Thread(target=function, daemon=True, name=function.__name__).start()
woken.wait()  # else wakes() could not say its tid
libc.getchar()
os._exit(0)
