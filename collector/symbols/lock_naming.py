"""The name of a lock: its data symbol, else where it was made, else where threads wait for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from locktop.collector.model import Frame, Kind
from locktop.collector.model.frames import PYTHON, innermost_own_frame
from locktop.collector.model.kinds import OBJECT_LOCK, PYTHON_LOCK
from locktop.collector.model.locks import LOADER_LOCK, PAUSE
from locktop.collector.symbols import lock_makers
from locktop.collector.symbols.python.interpreter import (
    makes_lock_for_a_wait,
    waits_for_lock,
    waits_for_object,
    waits_for_pause,
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


class LockIdentity(NamedTuple):
    """Which lock it is, and what it is called without any name."""

    id: int
    generation: int  # which of the locks with that id
    kind: Kind
    address: int

    @property
    def plain_name(self) -> str:
        """The name of a lock of which nothing else is known."""
        return f"{self.kind} {self.address:#x}"


class LockStacks(NamedTuple):
    """The stacks that may name a lock. Each is called only if its frames decide the name."""

    #: The initialisation, if it was observed. Only the frames up to the maker are read, because
    #: each name costs time.
    made_at: Callable[[], Iterable[Frame]] = tuple
    #: The frames with most waiting time.
    most_wait: Callable[[], Sequence[Frame]] = tuple
    #: A thread that waits now, with known Python functions.
    waiter: Callable[[], Sequence[Frame]] = tuple


class _Location(NamedTuple):
    """The frame that names a lock."""

    frame: Frame
    prefix: str  # the words before the function: "mutex made in"
    is_final: bool  # False: names that are not read yet may choose another frame
    is_lasting: bool  # False: the next lock at the address may belong to another function


class _LockName(NamedTuple):
    text: str
    is_settled: bool  # True: the lock keeps the name


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
        self._without_symbol: set[int] = set()  # addresses, also while maps are read again

    def name(self, lock: LockIdentity, stacks: LockStacks) -> str:
        """Return the best name so far."""
        key = lock.id, lock.generation
        settled = self._settled.get(key)
        if settled is not None:
            return settled
        name = self._best_name(lock, stacks)
        if name.is_settled:
            self._settled[key] = name.text
        return name.text

    def _best_name(self, lock: LockIdentity, stacks: LockStacks) -> _LockName:
        symbol = self._resolver.data(lock.address)
        if symbol:
            return _LockName(_plain_name(symbol), is_settled=True)
        if lock.kind is Kind.SEM and waits_for_pause(stacks.most_wait()):
            return _LockName(PAUSE, is_settled=False)
        if symbol is not None:
            self._without_symbol.add(lock.address)
        is_without = lock.address in self._without_symbol
        location = self._location(lock.kind, stacks) if is_without else None
        if location is None:
            return _LockName(lock.plain_name, is_settled=False)
        return self._location_name(lock, location)

    def _location(self, kind: Kind, stacks: LockStacks) -> _Location | None:
        """Return where the lock was made, else where threads wait for it."""
        maker, is_final = self._maker(stacks.made_at())
        frame = maker or innermost_own_frame(stacks.most_wait())
        if frame is None:
            return None
        relation = "made in" if maker else "in"
        if kind is not Kind.SEM or not waits_for_lock(frame):
            return _Location(frame, f"{kind} {relation}", is_final, is_lasting=True)
        waiter = stacks.waiter()
        owner = _python_owner(waiter)
        if owner is None:  # Python functions may still come
            return None
        is_of_one_wait = makes_lock_for_a_wait(frame) or _is_made_for_a_wait(waiter)
        is_lasting = self._generations or not is_of_one_wait
        word = OBJECT_LOCK if waits_for_object(stacks.most_wait()) else PYTHON_LOCK
        return _Location(owner, f"{word} {relation}", is_final, is_lasting)

    def _location_name(self, lock: LockIdentity, location: _Location) -> _LockName:
        frame, is_final = location.frame, location.is_final
        if not frame.function or frame.file is None:
            is_final = is_final and self._resolver.is_final(frame)
        if not frame.function:  # stripped, or not named yet
            if not is_final or not location.is_lasting:
                return _LockName(lock.plain_name, is_settled=False)
            text = f"{location.prefix} {frame.module}+{frame.offset:#x}"
            return _LockName(text, is_settled=True)
        text = f"{location.prefix} {frame.function}"
        if frame.file is not None:
            text = f"{text} ({frame.file}:{frame.line})"
        if not is_final:  # locks of two lines of a function are no class before these are known
            return _LockName(f"{text} {lock.address:#x}", is_settled=False)
        return _LockName(text, location.is_lasting)

    def _maker(self, frames: Iterable[Frame]) -> tuple[Frame | None, bool]:
        """Return the frame that made a lock, and whether further names cannot change the choice."""
        read: list[Frame] = []

        def note_frames() -> Iterator[Frame]:
            for frame in frames:
                read.append(frame)
                yield frame

        maker = lock_makers.maker(note_frames())
        return maker, all(self._resolver.is_final(frame) for frame in read)


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
