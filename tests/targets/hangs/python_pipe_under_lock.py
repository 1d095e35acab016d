"""A thread holds a lock, and writes to a full pipe. The only reader of the pipe wants the lock."""

import array
import fcntl
import os
import termios
import threading
import time

reading, writing = os.pipe()
handler_lock = threading.Lock()


def emit():
    with handler_lock:
        os.write(writing, b"x" * 5000)


def emitter():
    while True:
        emit()


def flush_records():
    with handler_lock:
        pass
    os.read(reading, 65536)


def reader():
    while True:
        flush_records()


def bytes_in_pipe():
    count = array.array("i", [0])
    fcntl.ioctl(reading, termios.FIONREAD, count)
    return count[0]


if __name__ == "__main__":
    threading.Thread(target=emitter, name="emitter").start()
    while bytes_in_pipe() < 40000:
        time.sleep(0.001)
    threading.Thread(target=reader, name="reader").start()
    print("ready", flush=True)
