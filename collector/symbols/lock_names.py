"""What to call a lock: its data symbol, else where it is waited for, else its address."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from locktop.collector.model import Frame, Kind
from locktop.collector.symbols.resolver import Resolver
from locktop.collector.symbols.wrappers import whose


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
        frame = whose(frames)
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
