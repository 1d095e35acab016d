"""A thread keeps the GIL in a function of C and sleeps there, while others want the GIL.

Prints the id of that thread before. The healthy thread gives the GIL away while it sleeps.
"""

import ctypes
import os
import sys
import threading
import time

libc = {"keeps": ctypes.PyDLL, "gives": ctypes.CDLL}[sys.argv[1]](None)


def works():
    while True:
        time.sleep(0.001)


def keeps():
    os.write(1, b"%d\n" % threading.get_native_id())
    while True:
        libc.sleep(1000)


for _ in range(2):
    threading.Thread(target=works, name="works", daemon=True).start()
threading.Thread(target=keeps, name="keeps", daemon=True).start()
threading.Event().wait()
