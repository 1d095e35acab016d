"""What /proc says about the threads of one process, look after look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from locktop.collector import procfs

#: A thread that stays in one wait is asked again only every so many looks (its name may change).
_ROUNDS = 16


@dataclass(frozen=True, slots=True)
class Task:
    """One living thread as the kernel shows it."""

    name: str
    state: str  # letter
    cpu_s: float


class Tasks:
    """The living threads by tid, as the process's own pid namespace counts them."""

    def __init__(self, pid: int, own_pid: int) -> None:
        self._pid = pid
        self._same_ids = pid == own_pid
        self._own_tids: dict[int, int] = {}
        self._known: dict[int, tuple[object, Task]] = {}
        self._round = 0

    def read(self, waits: Mapping[int, object]) -> dict[int, Task]:
        """Return the tasks. ``waits`` identifies by tid the wait that a thread is in: one that was
        in the same wait at the look before has used no processor time since."""
        self._round += 1
        found: dict[int, Task] = {}
        known: dict[int, tuple[object, Task]] = {}
        for kernel_tid in procfs.tids(self._pid):
            task = self._task(kernel_tid, waits)
            if task is not None and task[2].state not in "ZX":
                tid, wait, about = task
                found[tid] = about
                known[tid] = (wait, about)
        self._known = known
        return found

    def _task(
        self, kernel_tid: int, waits: Mapping[int, object]
    ) -> tuple[int, object, Task] | None:
        try:
            tid = kernel_tid if self._same_ids else self._own_tid(kernel_tid)
            wait = waits.get(tid)
            before = self._known.get(tid)
            due = (self._round + tid) % _ROUNDS == 0
            if before is not None and wait is not None and before[0] == wait and not due:
                return tid, wait, before[1]
            stat = procfs.thread_stat(self._pid, kernel_tid)
        except (OSError, ValueError):
            return None  # it ended in between
        return tid, wait, Task(stat.comm, stat.state, stat.cpu_s)

    def _own_tid(self, kernel_tid: int) -> int:
        tid = self._own_tids.get(kernel_tid)
        if tid is None:
            tid = self._own_tids[kernel_tid] = procfs.own_tid(self._pid, kernel_tid)
        return tid
