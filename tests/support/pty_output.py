"""The output of a process on a pseudo-terminal. A thread reads it at once."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable


class PtyOutput:
    """Reads the master side until stop(), or until all processes have closed the terminal."""

    def __init__(self, master: int, seen: Callable[[bytes], None] = lambda _: None) -> None:
        """Args:
        master: stays open after stop().
        seen: called with each new piece, in the thread that reads.
        """
        self._master = master
        self._seen = seen
        self._output = bytearray()
        self._changed = threading.Condition()
        self._leaving = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while not self._leaving.is_set():
            if not select.select([self._master], [], [], 0.05)[0]:
                continue
            try:
                data = os.read(self._master, 65536)
            except OSError:
                return
            with self._changed:
                self._output += data
                self._seen(data)
                self._changed.notify_all()

    @property
    def data(self) -> bytes:
        """All output so far."""
        with self._changed:
            return bytes(self._output)

    def wait_for(self, reached: Callable[[bytearray], object], within_s: float) -> bool:
        """Wait until ``reached`` is true of all output; return whether it came true."""
        with self._changed:
            return bool(self._changed.wait_for(lambda: reached(self._output), within_s))

    def stop(self, within_s: float) -> None:
        """Read no more: a read that has begun would keep the terminal open."""
        self._leaving.set()
        self._reader.join(within_s)
