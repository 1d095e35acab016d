"""LLVM's demanglers, with a bound on the memory that a name unfolds to.

A mangled name may refer to parts of itself. So 300 characters of a forged name unfold to more than
any memory holds. Each level of a nested name takes stack. Names that could become large or deep are
demangled by a worker with little memory and little time.
"""

from __future__ import annotations

import atexit
import re

from locktop.collector.symbols.bounded_worker import BoundedWorker, WorkerError, serve

_REFERENCE = re.compile(r"[STB][0-9A-Za-z]*_")
#: Characters that a name may unfold to if each reference doubles the part before it.
_MAX_UNFOLDED = 16 << 20
#: Characters of a name that fits a stack of 512 KB, however it is nested.
_MAX_NESTED = 1000
_MAX_NAME = 1 << 17  # characters of a readable name
_MAX_MEMORY = 160 << 20
_MAX_CPU_S = 2  # for one name
_PATIENCE_S = 60.0
_MAX_STARTS = 8  # a process for each forged name would be work, too


def new_worker() -> BoundedWorker:
    """Return a worker for names that could become large; it starts when it is needed."""
    return BoundedWorker(__spec__.name, max_answer=4 * _MAX_NAME, max_starts=_MAX_STARTS)


worker = new_worker()
atexit.register(worker.close)


def readable(symbol: str) -> str:
    """Return the whole readable form of a mangled name; "" if there is none."""
    references = len(_REFERENCE.findall(symbol))
    if len(symbol) <= _MAX_NESTED and len(symbol) << min(references, 64) <= _MAX_UNFOLDED:
        return demangle_here(symbol)
    return demangle_in_worker(symbol, worker)


def demangle_here(symbol: str) -> str:
    """Return the readable form, demangled in this process; "" if there is none."""
    import pycxxfilt

    is_rust = symbol.startswith("_R")
    try:
        name = pycxxfilt.rust_demangle(symbol) if is_rust else pycxxfilt.itanium_demangle(symbol)
    except ValueError:
        return ""
    return name if name and len(name) <= _MAX_NAME else ""


def demangle_in_worker(symbol: str, process: BoundedWorker) -> str:
    """Return the readable form, demangled by a worker; "" if there is none."""
    try:
        return process.call(symbol.encode(), _PATIENCE_S).decode("utf-8", "replace")
    except (WorkerError, UnicodeError):
        return ""


def _answer(request: bytes) -> bytes:
    return demangle_here(request.decode("utf-8", "replace")).encode("utf-8", "replace")


if __name__ == "__main__":
    serve(_answer, max_memory=_MAX_MEMORY, max_cpu_s=_MAX_CPU_S)
