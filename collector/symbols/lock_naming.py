"""The name of a lock: its data symbol, else where it was made, else where threads wait for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from locktop.collector.model import Frame, Kind
from locktop.collector.model.frames import innermost_own_frame
from locktop.collector.model.kinds import PYTHON_LOCK
from locktop.collector.model.locks import LOADER_LOCK
from locktop.collector.symbols import lock_makers
from locktop.collector.symbols.python.interpreter import (
    PYTHON,
    makes_lock_for_a_wait,
    waits_for_lock,
)
from locktop.collector.symbols.resolver import Resolver

#: Python functions say whose a lock of Python is, but not those of its own library.
_PYTHON_WRAPPERS = ("threading.py", "queue.py")

#: The loader's own data, of which only a few locks are mutexes (glibc, elf/rtld.c). The name of a
#: part is _rtld_global._dl_load_lock, or _rtld_global+0x988 without debug information.
_OF_LOADER = ("_rtld_global._dl_load_", "_rtld_global+")
#: The locks of the standard streams (glibc, libio/stdfiles.c).
_STREAMS = {
    f"_IO_stdfile_{number}_lock": f"{name}'s FILE lock"
    for number, name in enumerate(("stdin", "stdout", "stderr"))
}


class LockNames:
    """Gives a lock a name, and keeps the name: a row that changes its name cannot be followed.

    Args:
        resolver: Names addresses.
        generations: Whether `name()` gets another generation when another lock has the address.
    """

    def __init__(self, resolver: Resolver, generations: bool = True) -> None:
        self._resolver = resolver
        self._generations = generations
        self._settled: dict[tuple[int, int], str] = {}

    def name(
        self,
        lock: int,
        generation: int,
        kind: Kind,
        address: int,
        made_at: Callable[[], Iterable[Frame]],
        stack: Callable[[], Sequence[Frame]],
        waiter: Callable[[], Sequence[Frame]] = tuple,
    ) -> str:
        """Return the best name so far.

        Args:
            lock: The number of the lock.
            generation: Which of the locks with that number.
            kind: The kind of lock.
            address: The address of the lock.
            made_at: Returns the frames of the initialisation, if it was observed. Only the frames
                up to the maker are read, because each name costs time.
            stack: Returns the frames with most waiting time.
            waiter: Returns the frames of a thread that waits now, with known Python functions.

        The three functions are called only if their frames decide the name.
        """
        settled = self._settled.get((lock, generation))
        if settled is not None:
            return settled
        symbol = self._resolver.data(address)
        if symbol:
            return self._settle(lock, generation, _plain_name(symbol))
        plain = f"{kind} {address:#x}"
        if symbol is None:
            return plain
        maker, is_final = self._maker(made_at())
        frame, keeps, word = maker or innermost_own_frame(stack()), True, str(kind)
        if frame is not None and kind is Kind.SEM and waits_for_lock(frame):
            waiting = waiter()  # Python functions may still come
            one_wait = makes_lock_for_a_wait(frame) or _is_made_for_a_wait(waiting)
            frame, word = _python_owner(waiting), PYTHON_LOCK
            keeps = self._generations or not one_wait
        if frame is None:
            return plain
        where = "made in" if maker else "in"
        if not frame.function or frame.file is None:
            is_final = is_final and self._resolver.is_final(frame)
        if not frame.function:  # stripped, or not named yet
            nameless = f"{word} {where} {frame.module}+{frame.offset:#x}"
            return self._settle(lock, generation, nameless) if is_final and keeps else plain
        name = f"{word} {where} {frame.function}"
        if frame.file is not None:
            name = f"{name} ({frame.file}:{frame.line})"
        if not is_final:  # locks of two lines of a function are no class before these are known
            return f"{name} {address:#x}"
        return self._settle(lock, generation, name) if keeps else name

    def _maker(self, frames: Iterable[Frame]) -> tuple[Frame | None, bool]:
        """Return the frame that made a lock, and whether further names cannot change the choice."""
        read: list[Frame] = []

        def noted() -> Iterator[Frame]:
            for frame in frames:
                read.append(frame)
                yield frame

        maker = lock_makers.maker(noted())
        return maker, all(self._resolver.is_final(frame) for frame in read)

    def _settle(self, lock: int, generation: int, name: str) -> str:
        self._settled[lock, generation] = name
        return name


def _plain_name(symbol: str) -> str:
    """Return the name that a lock of the C library has outside of its sources."""
    name = symbol.rpartition(" ")[2]  # without the file
    if name.startswith(_OF_LOADER):
        return f"{LOADER_LOCK} ({name})"
    return _STREAMS.get(name, symbol)


def _python_owner(frames: Sequence[Frame]) -> Frame | None:
    own = (f for f in frames if f.module == PYTHON and f.file not in _PYTHON_WRAPPERS)
    return next(own, None)


def _is_made_for_a_wait(frames: Sequence[Frame]) -> bool:
    """Tell whether a lock was made for one wait, as threading.Condition does. The lock of the next
    wait may have the same address."""
    first = next((f for f in frames if f.module == PYTHON), None)
    return first is not None and (first.function, first.file) == ("wait", "threading.py")
