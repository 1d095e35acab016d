"""Threads with names of all kinds that Python knows and the kernel does not. The first line has the
name of each thread. Of a thread that only the kernel has a name for, it has null. Each line on
stdin starts one thread more, which the answer names, and renames another one."""

from __future__ import annotations

import _thread
import ctypes
import json
import sys
import threading

stop = threading.Event()
KERNEL_NAME = b"of-the-kernel"
PR_SET_NAME = 15


class WithManyAttributes(threading.Thread):
    """The attributes no longer share a table of names with those of other threads."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        for number in range(40):
            setattr(self, f"extra_{number}", number)

    def run(self) -> None:
        stop.wait()


class WithDictionary(threading.Thread):
    """The attributes lie in a dictionary that the program has seen."""

    def run(self) -> None:
        self.extra = 1
        del self.extra
        self.__dict__["another"] = 2
        stop.wait()


def named_by_the_kernel(entered: threading.Event, with_dummy: bool) -> None:
    """Run in a thread that ``threading`` has not started."""
    ctypes.CDLL(None).prctl(PR_SET_NAME, KERNEL_NAME)
    if with_dummy:
        assert threading.current_thread().name.startswith("Dummy-")
    ids.append(threading.get_native_id())
    entered.set()
    stop.wait()


def wait_with_a_longer_name() -> None:
    """Name a thread longer than the kernel does: CPython 3.14 cuts the name for it."""
    stop.wait()


def started(thread: threading.Thread) -> threading.Thread:
    thread.daemon = True
    thread.start()
    return thread


ids: list[int] = []
threads = [threading.main_thread()]
threads += [started(threading.Thread(target=stop.wait, name=f"worker-{n}")) for n in range(3)]
threads += [
    started(threading.Thread(target=stop.wait, name="n" * 70)),
    started(threading.Thread(target=stop.wait)),
    started(threading.Thread(target=wait_with_a_longer_name)),
    started(WithManyAttributes("çà et là")),
    started(WithManyAttributes("名前")),
    started(WithDictionary(name="with a dictionary")),
]
for with_dummy in (False, True):
    entered = threading.Event()
    _thread.start_new_thread(named_by_the_kernel, (entered, with_dummy))
    entered.wait()
renamed = threads[1]


def answer() -> None:
    names = {thread.native_id: thread.name for thread in threads}
    print(json.dumps({**names, **dict.fromkeys(ids)}), flush=True)


answer()
for line in sys.stdin:
    threads.append(started(threading.Thread(target=stop.wait, name=line.strip())))
    renamed.name = f"renamed for {line.strip()}"
    answer()
