"""The threads of a saved process, as ThreadFiles has those of a process that runs."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator

from locktop.collector.linux import saved_process
from locktop.collector.linux.saved_process import SavedThread
from locktop.collector.linux.thread_files import TaskRecord, ThreadFiles
from locktop.collector.native import lib

_FACTS: int = lib.LT_TASK_THERE | lib.LT_TASK_SCHED
_ASLEEP: int = lib.LT_TASK_ASLEEP
_RUNS = 1  # a number that stays the same: no thread moves


class SavedThreadFiles:
    """The threads of one core. Nothing of them changes; see ThreadFiles for the methods."""

    def __init__(self, number: int) -> None:
        """``number``: that of the saved process."""
        process = saved_process.get(number)
        threads = process.threads if process is not None else ()
        self._threads = {saved_process.kernel_tid(number, t.tid): t for t in threads}
        self._sampled: set[int] = set()
        self._now_s = time.monotonic()

    def now_s(self) -> float:
        return self._now_s

    def tids(self) -> list[int]:
        return list(self._threads)

    def tids_by_number(self) -> tuple[list[int], bool]:
        return self.tids(), False

    def read(self, tids: Collection[int], calls: bool = False) -> list[TaskRecord | None]:
        return [self._record(self._threads.get(tid)) for tid in tids]

    def read_scheds(self, tids: Collection[int]) -> Iterator[tuple[int, ...]]:
        for record in self.read(tids):
            yield (record.at_ns, record.ran_ns, 0, _RUNS) if record is not None else (0, 0, 0, 0)

    def sample(self, tids: Collection[int], number: int) -> list[tuple[int, TaskRecord | None]]:
        new = [tid for tid in tids if tid not in self._sampled]
        self._sampled.update(new)
        return list(zip(new, self.read(new), strict=True))

    def still_sleeps(self, tid: int) -> bool:
        thread = self._threads.get(tid)
        return thread is not None and thread.is_asleep

    def asleep(self, tids: Iterable[int]) -> set[int]:
        return {tid for tid in tids if self.still_sleeps(tid)}

    def keep_only(self, tids: Collection[int]) -> None:
        """See ThreadFiles. No file is open."""

    def close(self) -> None:
        """See ThreadFiles. No file is open."""

    def _record(self, thread: SavedThread | None) -> TaskRecord | None:
        if thread is None:
            return None
        name = thread.name.encode()
        return TaskRecord(
            at_ns=time.monotonic_ns(),
            cpu_ticks=0,
            disk_ticks=0,
            ran_ns=round(thread.cpu_s * 1e9),
            queued_ns=0,
            runs=_RUNS,
            facts=_FACTS | (_ASLEEP if thread.is_asleep else 0),
            name_size=len(name),
            call_size=len(thread.call),
            state=ord("S" if thread.is_asleep else "R"),
            name=name,
            call=thread.call,
        )


def open_thread_files(pid: int, share: float = 0.75) -> ThreadFiles | SavedThreadFiles:
    """Return the threads of a process, which may be a saved one. See ThreadFiles for ``share``."""
    return ThreadFiles(pid, share) if saved_process.get(pid) is None else SavedThreadFiles(pid)
