"""What to call a lock: its data symbol, else where it was made, else where it is waited for."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from locktop.collector.model import Frame, Kind
from locktop.collector.model.frames import innermost_own_frame
from locktop.collector.symbols.python.merge_stacks import PYTHON
from locktop.collector.symbols.resolver import Resolver

#: Functions that make locks for others (uv_mutex_init, PyThread_allocate_lock): whose it is they do
#: not tell.
_FACTORY = re.compile(
    r"(?=.*(?:mutex|lock|sem|cond|monitor|crit|barrier))(?=.*(?:init|alloc|creat|new|make))",
    re.IGNORECASE,
)
#: Every lock of Python's is taken here: whose it is the Python functions tell,
_PYTHON_LOCK = "PyThread_acquire_lock"
#: those of its own library not.
_PYTHON_WRAPPERS = ("threading.py", "queue.py")


class LockNames:
    """Gives a lock a name, and keeps it: a row that changes its name cannot be followed."""

    def __init__(self, resolver: Resolver, generations: bool = True) -> None:
        """``generations``: name() is told when another lock lies where one was."""
        self._resolver = resolver
        self._generations = generations
        self._settled: dict[tuple[int, int], str] = {}

    def name(
        self,
        lock: int,
        generation: int,
        kind: Kind,
        address: int,
        made_at: Callable[[], Sequence[Frame]],
        stack: Callable[[], Sequence[Frame]],
        waiter: Callable[[], Sequence[Frame]] = tuple,
    ) -> str:
        """Return the best name so far. ``made_at`` gives the frame that initialised it, if that was
        seen, ``stack`` the frames with most wait, ``waiter`` those of somebody who waits now with
        Python's functions, if they are known; all only when needed."""
        known = self._settled.get((lock, generation))
        if known is not None:
            return known
        symbol = self._resolver.data(address)
        if symbol:
            return self._settle(lock, generation, symbol)
        plain = f"{kind} {address:#x}"
        if symbol is None:
            return plain
        made = _maker(made_at())
        frame, settles = made or innermost_own_frame(stack()), True
        if frame is not None and frame.function.startswith(_PYTHON_LOCK):
            waiting = waiter()  # they may still come
            frame, settles = (
                _whose_python(waiting),
                self._generations or not _is_made_for_a_wait(waiting),
            )
        if frame is None:
            return plain
        where = "made in" if made else "in"
        if not frame.function:  # as in a stripped program, unless the name may still come
            nameless = f"{kind} {where} {frame.module}+{frame.offset:#x}"
            settled = self._resolver.is_nameless(frame.address)
            return self._settle(lock, generation, nameless) if settled else plain
        name = f"{kind} {where} {frame.function}"
        if frame.file is None:
            return name  # the line may still come
        name = f"{name} ({frame.file}:{frame.line})"
        return self._settle(lock, generation, name) if settles else name

    def _settle(self, lock: int, generation: int, name: str) -> str:
        self._settled[lock, generation] = name
        return name


def _whose_python(frames: Sequence[Frame]) -> Frame | None:
    own = (f for f in frames if f.module == PYTHON and f.file not in _PYTHON_WRAPPERS)
    return next(own, None)


def _is_made_for_a_wait(frames: Sequence[Frame]) -> bool:
    """Each wait for a threading.Condition, and what is made of it, makes a lock; the next one's may
    lie where this one was."""
    first = next((f for f in frames if f.module == PYTHON), None)
    return first is not None and (first.function, first.file) == ("wait", "threading.py")


def _maker(frames: Sequence[Frame]) -> Frame | None:
    """The frame, if it tells something: a library's function that makes locks for all does not."""
    frame = innermost_own_frame(frames)
    return None if frame is None or _FACTORY.search(frame.function) else frame
