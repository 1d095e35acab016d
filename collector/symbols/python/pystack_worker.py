"""Reads the Python frames of a running CPython process: run as a process of its own.

Each line on standard input is a process id; the answer is one line of JSON (see python_reader.py).
pystack follows pointers in the memory of a process that runs on meanwhile, in C++: if that goes
wrong it is this process that ends, and nobody's screen. Root's becomes one of the user whose
process it is, where that is enough.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import sys
from typing import Any

#: Of one answer. A list that was torn while it was read may lead in a circle.
_MAX_CPU_S = 20
_MAX_MEMORY = 4 << 30


def main() -> None:
    """Answer until standard input ends: with whoever asks."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit(resource.RLIMIT_AS, _MAX_MEMORY)
    for line in sys.stdin:
        pid = int(line)
        _import()
        if os.geteuid() == 0 and _is_enough(pid):
            _become_user_of(pid)
        used = resource.getrusage(resource.RUSAGE_SELF)
        _limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + _MAX_CPU_S)
        print(json.dumps(_answer(pid)), flush=True)


def _import() -> None:
    """Import while everything that is installed can still be read."""
    with contextlib.suppress(ImportError):
        for module in ("pystack.engine", "pystack.errors", "pystack.types", "logging"):
            importlib.import_module(module)


def _is_enough(pid: int) -> bool:
    """Tell whether the process's own user may read its memory: tried by a process, for there is no
    way back."""
    trial = os.fork()
    if trial == 0:
        try:
            _become_user_of(pid)
            os.close(os.open(f"/proc/{pid}/mem", os.O_RDONLY))
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(trial, 0)[1] == 0


def _become_user_of(pid: int) -> None:
    about = os.stat(f"/proc/{pid}")
    os.setgroups([])
    os.setresgid(about.st_gid, about.st_gid, about.st_gid)
    os.setresuid(about.st_uid, about.st_uid, about.st_uid)


def _limit(what: int, value: int) -> None:
    _, hard = resource.getrlimit(what)
    resource.setrlimit(what, (value if hard < 0 else min(value, hard), hard))


def _answer(pid: int) -> dict[str, Any]:
    try:
        from pystack import engine
    except ImportError:
        return {"failed": "missing"}
    try:
        with open(f"/proc/{pid}/mem", "rb"):
            pass  # the same right is asked for as by process_vm_readv(2)
    except PermissionError:
        return {"failed": "forbidden"}
    except OSError:
        return {"failed": "gone"}
    try:
        threads = engine.get_process_threads(
            pid, stop_process=False, native_mode=engine.NativeReportingMode.OFF
        )
        return {"threads": _stacks(threads)}
    except Exception as error:  # its own, and RuntimeError where memory was not as expected
        failed = "unreadable" if _lies_here(pid) else "elsewhere"
        return {"failed": failed, "why": str(error)}


def _lies_here(pid: int) -> bool:
    """Tell whether the interpreter's file is under its name here, too: pystack opens it by that."""
    link = f"/proc/{pid}/exe"
    try:
        return os.path.samefile(os.readlink(link), link)
    except OSError:
        return False


def _stacks(threads: Any) -> dict[int, list[list[tuple[str, str, int]]]]:
    """Return by tid the runs of frames, innermost first; a run is what one call of the
    interpreter's evaluation function executes."""
    found: dict[int, list[list[tuple[str, str, int]]]] = {}
    several, torn = set(), set()
    for thread in threads:
        if thread.tid in found:  # in several interpreters: which called which is not told
            several.add(thread.tid)
        runs = found[thread.tid] = []
        for frame in thread.all_frames:  # the outermost first
            if frame.is_entry:
                runs.insert(0, [])
            if runs and not frame.is_shim:
                code = frame.code
                runs[0].insert(0, (code.scope, code.filename, code.location.lineno))
                # Of a name that is not ASCII other bytes are read.
                if min(code.scope + code.filename, default="") < " ":
                    torn.add(thread.tid)
    left_out = several | torn
    return {tid: [] if tid in left_out else runs for tid, runs in found.items()}


if __name__ == "__main__":
    main()
