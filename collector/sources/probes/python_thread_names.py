"""The names of Python's threads, kept from scan to scan.

A reading of 500 threads takes some 10 ms. So there is one when a new thread appears, and a rare one
for threads that were renamed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from locktop.collector.model import Draft
from locktop.collector.symbols.python.thread_names import ThreadNameReader

#: A new thread may not have its name yet; other threads never get one from Python.
_TRIES = 3
#: Seconds between two readings for renamed threads.
_REREAD_S = 10.0
#: At most this share of the time goes into readings.
_MAX_SHARE = 0.05

#: The name of a thread to which the program gave none (threading.py, _newname).
_DEFAULT = re.compile(r"Thread-\d+(?: \(.*\))?$")

Life = tuple[int, int]  # tid, number of the thread with that tid


class PythonThreadNames:
    """The names of the threads of one program."""

    def __init__(
        self, reader: ThreadNameReader, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._reader = reader
        self._clock = clock
        self._names: dict[Life, str] = {}
        self._tries: dict[Life, int] = {}
        self._free_at = self._reread_at = 0.0
        self._is_first = True

    def annotate(self, draft: Draft, lives: Mapping[int, int], may_run_python: bool) -> None:
        """Give the threads of a draft the names that Python has for them.

        Args:
            draft: of a living process.
            lives: the numbers of the threads, by tid.
            may_run_python: whether stacks show an interpreter, as one may be loaded later.
        """
        if not (self._is_first or may_run_python or self._reader.is_python):
            return
        self._is_first = False
        living = {
            (thread.tid, lives.get(thread.tid, 0)) for thread in draft.threads if thread.alive
        }
        new = {life for life in living - self._names.keys() if self._tries.get(life, 0) < _TRIES}
        now = self._clock()
        if now >= self._free_at and (new or now >= self._reread_at):
            self._read(living)
            for life in new:
                self._tries[life] = self._tries.get(life, 0) + 1
        self.apply(draft, lives)

    def apply(self, draft: Draft, lives: Mapping[int, int]) -> None:
        """Give the threads of a draft the names that are known."""
        names, life_of = self._names, lives.get
        if not names and not self._tries:
            return
        comm = draft.process.comm
        named = [
            (thread, _better(thread.name, comm, names.get((thread.tid, life_of(thread.tid, 0)))))
            for thread in draft.threads
        ]
        draft.threads = tuple([
            replace(thread, name=name) if name is not None else thread for thread, name in named
        ])  # fmt: skip
        present = {(thread.tid, life_of(thread.tid, 0)) for thread in draft.threads}
        for kept in (self._names, self._tries):
            if len(kept) > len(present):
                for life in kept.keys() - present:
                    del kept[life]

    def _read(self, living: set[Life]) -> None:
        began = self._clock()
        names = self._reader.read()
        ended = self._clock()
        self._free_at = ended + (ended - began) / _MAX_SHARE
        self._reread_at = ended + _REREAD_S
        for life in living:
            if life[0] in names:
                self._names[life] = names[life[0]]


def _better(kernel: str, comm: str, python: str | None) -> str | None:
    """Return Python's name of a thread, or None if the kernel's says more.

    Then the program gave the thread that name, and Python only counted. From CPython 3.14 on the
    kernel may have the beginning of Python's name.
    """
    if python is None or kernel == comm or python.startswith(kernel):
        return python
    return None if _DEFAULT.match(python) else python
