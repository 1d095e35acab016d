"""What to call a lock: its data symbol, else where it is waited for, else its address."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from locktop.collector.model import Frame, Kind
from locktop.collector.symbols.resolver import Resolver

# Locks are taken through these; the name should tell whose lock it is.
_WRAPPERS = ("std::", "__gthread", "__gnu_cxx::", "boost::", "absl::", "folly::", "tbb::")
_WRAPPER_MODULES = ("libc.so", "libpthread", "libstdc++", "libc++")


class LockNames:
    """Gives a lock a name, and keeps it: a row that changes its name cannot be followed."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._settled: dict[tuple[int, int], str] = {}

    def name(
        self,
        lock: int,
        generation: int,
        kind: Kind,
        address: int,
        stack: Callable[[], Sequence[Frame]],
    ) -> str:
        """Return the best name so far; ``stack`` gives the frames with most wait when needed."""
        known = self._settled.get((lock, generation))
        if known is not None:
            return known
        symbol = self._resolver.data(address)
        if symbol:
            return self._settle(lock, generation, symbol)
        plain = f"{kind} {address:#x}"
        if symbol is None:
            return plain
        frames = stack()
        frame = _whose(frames)
        if frame is None:
            return plain
        if not frame.function:  # as in a stripped program, unless the name may still come
            nameless = f"{kind} in {frame.module}+{frame.offset:#x}"
            settled = self._resolver.is_nameless(frame.address)
            return self._settle(lock, generation, nameless) if settled else plain
        name = f"{kind} in {frame.function}"
        if frame.file is None:
            return name  # the line may still come
        return self._settle(lock, generation, f"{name} ({frame.file}:{frame.line})")

    def _settle(self, lock: int, generation: int, name: str) -> str:
        self._settled[lock, generation] = name
        return name


def _whose(frames: Sequence[Frame]) -> Frame | None:
    """The innermost frame that is not a wrapper's; one without a name too, for the named ones
    further out are somebody else's. What belongs to no file cannot be called anything."""
    own = (
        frame
        for frame in frames
        if (frame.function or frame.module)
        and not frame.function.startswith(_WRAPPERS)
        and not frame.module.startswith(_WRAPPER_MODULES)
    )
    return next(own, None)
