"""Reads the Python frames of a running CPython process, or of a core, in a process of its own.

A request is a process id in decimal, perhaps with ids of threads after it. A request about a core
is in JSON. The answer is JSON (frame_reader.py), with the runs of these threads after the reading.
pystack, in C++, follows pointers in the memory of a process that goes on meanwhile. If that goes
wrong, the worker ends and not the user's screen. A worker of root becomes the user of the process,
or the owner of the core, where that is enough.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
from typing import Any

from locktop.collector.linux import procfs
from locktop.collector.symbols.bounded_worker import serve

#: For one answer. A list that was torn while it was read may be circular.
_MAX_CPU_S = 20
_MAX_MEMORY = 4 << 30


def _answer(request: bytes) -> bytes:
    _import()
    if request.startswith(b"{"):
        return _answer_about_core(**json.loads(request))
    pid, *tids = map(int, request.split())
    if os.geteuid() == 0 and _is_enough(f"/proc/{pid}", f"/proc/{pid}/mem"):
        _become_user_of(f"/proc/{pid}")
    return json.dumps(_read(pid) | {"runs": _runs_of(pid, tids)}).encode()


def _answer_about_core(core: str, exe: str, tids: list[int]) -> bytes:
    if os.geteuid() == 0 and _is_enough(core, core):
        _become_user_of(core)
    try:
        from pystack import engine
    except ImportError:
        return json.dumps({"failed": "missing"}).encode()
    try:
        off = engine.NativeReportingMode.OFF
        threads = engine.get_process_threads_for_core(core, exe, native_mode=off)
        answer = {"threads": _stacks(threads), "runs": dict.fromkeys(tids, 1)}
    except Exception as error:  # as in _read()
        failed = "unreadable" if os.path.exists(exe) else "elsewhere"
        answer = {"failed": failed, "why": str(error)}
    return json.dumps(answer).encode()


def _import() -> None:
    """Import while everything that is installed can still be read."""
    with contextlib.suppress(ImportError):
        for module in ("pystack.engine", "pystack.errors", "pystack.types", "logging"):
            importlib.import_module(module)


def _is_enough(path: str, memory: str) -> bool:
    """Tell whether the owner of a path may read a file. A child tries: there is no way back."""
    trial = os.fork()
    if trial == 0:
        try:
            _become_user_of(path)
            os.close(os.open(memory, os.O_RDONLY))
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(trial, 0)[1] == 0


def _become_user_of(path: str) -> None:
    about = os.stat(path)
    os.setgroups([])
    os.setresgid(about.st_gid, about.st_gid, about.st_gid)
    os.setresuid(about.st_uid, about.st_uid, about.st_uid)


def _read(pid: int) -> dict[str, Any]:
    try:
        from pystack import engine
    except ImportError:
        return {"failed": "missing"}
    try:
        with open(f"/proc/{pid}/mem", "rb"):
            pass  # process_vm_readv(2) needs the same right
    except PermissionError:
        return {"failed": "forbidden"}
    except OSError:
        return {"failed": "gone"}
    try:
        threads = engine.get_process_threads(
            pid, stop_process=False, native_mode=engine.NativeReportingMode.OFF
        )
        return {"threads": _stacks(threads)}
    except Exception as error:  # pystack's own, and RuntimeError for unexpected memory
        failed = "unreadable" if _lies_here(pid) else "elsewhere"
        return {"failed": failed, "why": str(error)}


def _lies_here(pid: int) -> bool:
    """Tell whether the interpreter's file has its name here, too: pystack opens it by name."""
    link = f"/proc/{pid}/exe"
    try:
        return os.path.samefile(os.readlink(link), link)
    except OSError:
        return False


def _runs_of(pid: int, tids: list[int]) -> dict[int, int]:
    """Return how often the kernel put each thread on a CPU, if it counts."""
    counts = {}
    for tid in tids:
        with contextlib.suppress(OSError, ValueError):  # the thread has ended
            counts[tid] = procfs.thread_runs(pid, tid)
    return counts


def _stacks(threads: Any) -> dict[int, list[list[tuple[str, str, int]]]]:
    """Return by tid the runs of frames, innermost first; one call of the interpreter's evaluation
    function executes a run."""
    stacks: dict[int, list[list[tuple[str, str, int]]]] = {}
    several, torn = set(), set()
    for thread in threads:
        if thread.tid in stacks:  # in several interpreters: which called which is not known
            several.add(thread.tid)
        runs = stacks[thread.tid] = []
        for frame in thread.all_frames:  # the outermost first
            if frame.is_entry:
                runs.insert(0, [])
            if runs and not frame.is_shim:
                code = frame.code
                runs[0].insert(0, (code.scope, code.filename, code.location.lineno))
                # pystack reads wrong bytes of a name that is not ASCII.
                if min(code.scope + code.filename, default="") < " ":
                    torn.add(thread.tid)
    left_out = several | torn
    return {tid: [] if tid in left_out else runs for tid, runs in stacks.items()}


if __name__ == "__main__":
    serve(_answer, max_memory=_MAX_MEMORY, max_cpu_s=_MAX_CPU_S)
