"""The first use of a lock in the code of a thread, and the words in memory that are the lock."""

from __future__ import annotations

from msgspec import Struct


class NextUse(Struct, frozen=True):
    """The first writes to the word of a lock, on all ways through the code."""

    lowers: bool = False  # the value gets less, as of a lock that is released
    raises: bool = False
    writes: bool = False  # to a value that is not known

    def __bool__(self) -> bool:
        return self.lowers or self.raises or self.writes

    def __or__(self, other: NextUse) -> NextUse:
        return NextUse(
            lowers=self.lowers or other.lowers,
            raises=self.raises or other.raises,
            writes=self.writes or other.writes,
        )


class SoughtLock(Struct, frozen=True):
    """The words of a lock whose holder is sought."""

    addresses: frozenset[int]
    #: the bits that tell whether the lock is held; 0: any bit may tell it
    held_bits: int = 0
    #: a free lock has the higher value, as a semaphore has
    is_free_high: bool = False
    #: these may be no lock: who releases it must have taken it
    needs_proof: bool = False

    @property
    def take(self) -> NextUse:
        """The use of a thread that takes the lock."""
        return NextUse(lowers=self.is_free_high, raises=not self.is_free_high)

    def is_released(self, use: NextUse) -> bool:
        """Return whether the first use is a release on all ways."""
        if self.is_free_high:
            return use.raises and not use.lowers
        return use.lowers and not use.raises

    def is_taken(self, use: NextUse) -> bool:
        """Return whether the first use is to take the lock, on some way."""
        return use.writes or (use.lowers if self.is_free_high else use.raises)
