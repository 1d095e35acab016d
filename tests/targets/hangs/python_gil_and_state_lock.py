"""A thread holds the GIL, and wants a mutex. Another one holds the mutex, and wants the GIL.

The argument is the library made of gil_and_state_lock.c. With a second argument, a third thread
sleeps in a function of C: then the process does not hang, but the two threads do.
"""

import ctypes
import sys
import threading
import time

without_gil, with_gil = ctypes.CDLL(sys.argv[1]), ctypes.PyDLL(sys.argv[1])


def load_scene():
    without_gil.state_load()


def render_scene():
    time.sleep(0.1)  # the loader must have begun: this thread keeps the GIL
    with_gil.state_add()


if __name__ == "__main__":
    loader = threading.Thread(target=load_scene, name="loader")
    renderer = threading.Thread(target=render_scene, name="renderer")
    if sys.argv[2:]:
        sleeper = ctypes.CDLL(None).pause
        threading.Thread(target=sleeper, name="sleeper", daemon=True).start()
    print("ready", flush=True)
    loader.start()
    renderer.start()
    loader.join()
