"""What a thread is seen in the light of: the other threads of the same look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from locktop.collector.linux.threads import KernelThread
from locktop.collector.model import Use
from locktop.collector.native import lib
from locktop.collector.shm import layout
from locktop.collector.shm.layout import WaitBlock
from locktop.collector.shm.reader import RawThread

if TYPE_CHECKING:
    from locktop.collector.sources.preload.lock_state import LockNow

_KIND_SHIFT: int = lib.LT_KIND_SHIFT
_ADDRESS: int = (1 << _KIND_SHIFT) - 1
_SEM: int = lib.LT_KIND_SEM
_JOIN: int = lib.LT_KIND_JOIN
_OWNED_BY_NOBODY = frozenset({_SEM, lib.LT_KIND_COND, lib.LT_KIND_BARRIER})


@dataclass(slots=True)
class ScanContext:
    """One look: its threads by tid, what goes on at each lock, the tasks that the kernel shows."""

    threads: Mapping[int, RawThread]
    locks: Mapping[int, LockNow]
    tasks: Mapping[int, KernelThread]
    _by_pthread: dict[int, int] | None = None
    of_nobody: set[int] = field(default_factory=set)  # locks waited for that nobody owns
    _holders: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for raw in self.threads.values():
            if raw.wait and raw.wait.key >> _KIND_SHIFT in _OWNED_BY_NOBODY:
                self.of_nobody.add(raw.wait.lock)

    def holders(self, lock: int) -> tuple[int, ...]:
        """Return the living threads that list a lock as held."""
        found = self._holders.get(lock)
        if found is None:
            now = self.locks.get(lock)
            found = tuple([tid for tid in now.holders if tid in self.tasks]) if now else ()
            self._holders[lock] = found
        return found

    def awaited(self, wait: WaitBlock) -> int:
        """Return the living thread whose end a join waits for, 0 unknown."""
        if wait.key >> _KIND_SHIFT != _JOIN:
            return 0
        if self._by_pthread is None:
            self._by_pthread = {
                raw.block.pthread: tid for tid, raw in self.threads.items() if tid in self.tasks
            }
        return self._by_pthread.get(wait.key & _ADDRESS, 0)

    def uses(self, raw: RawThread, uses: Sequence[layout.UseRecord]) -> tuple[Use, ...] | None:
        """See Thread.uses. ``uses``: what ``raw`` says of them."""
        if not raw.uses_are_complete:
            return None
        wanted = [use for use in uses if use.lock in self.of_nobody]
        return tuple([Use(use.lock, use.acquisitions, use.signals) for use in wanted])


def has_signalled(uses: Iterable[layout.UseRecord]) -> bool:
    """See Thread.signals."""
    return any(use.signals > (use.acquisitions if use.kind == _SEM else 0) for use in uses)
