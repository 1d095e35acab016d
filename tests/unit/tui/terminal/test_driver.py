"""The end of the driver while a signal is still pending for the writer thread."""

from __future__ import annotations

import subprocess
import sys

#: The writer handles its signal only after the end of the patience, as an unscheduled thread.
_LATE = """
import os, signal, threading, time
from locktop.tui.terminal import driver

blocked, sent, ended = threading.Event(), threading.Event(), threading.Event()

class File:
    dropping = abandoned = False
    def fileno(self):
        sent.set()
        return os.open(os.devnull, os.O_RDWR)

def late():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    blocked.set()
    ended.wait()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])

writer = threading.Thread(target=late)
writer.start()
blocked.wait()
patience = driver.Patience(File(), lambda: writer, patience_s=0.01)
patience.start()
while not sent.is_set():
    time.sleep(0.01)
patience.stop()
ended.set()
writer.join()
print("over", signal.getsignal(signal.SIGALRM) == signal.SIG_DFL)
"""


def test_a_late_signal_to_the_writer_does_not_end_the_process() -> None:
    child = [sys.executable, "-c", _LATE]
    done = subprocess.run(child, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "over True\n", "")
