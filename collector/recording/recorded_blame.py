"""The blame of a lock as a recording has it: rows, made into objects when somebody reads them."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import overload

from locktop.collector.model import Blame, LazyBlame, PackedBlame

#: As PackedBlame describes a row.
_ROW = struct.Struct("<4xII4xQ")


class RecordedBlame(LazyBlame):
    """Blame from rows that ``check`` accepted."""

    __slots__ = ("_packed",)

    def __init__(self, packed: PackedBlame) -> None:
        self._packed = packed

    @staticmethod
    def check(packed: PackedBlame) -> None:
        """Raise ValueError for rows that are no blame."""
        rows, count = packed.rows, len(packed.origins)
        if not rows or len(rows) % _ROW.size:
            raise ValueError("rows of blame of a wrong length")
        if any(origin >= count for origin, _, _ in _ROW.iter_unpack(rows)):
            raise ValueError("a row of blame without an origin")
        if not 1 <= packed.hz <= 1e12:
            raise ValueError("blame with an impossible clock")

    @property
    def sites(self) -> Set[int]:
        return {site for site, _ in self._packed.origins}

    @property
    def further_locks(self) -> Set[int]:
        return {lock for _, lock in self._packed.origins}

    @property
    def unheld_s(self) -> float:
        return self._packed.unheld_s

    @property
    def behind_s(self) -> float:
        return self._packed.behind_s

    def packed(self) -> PackedBlame:
        return self._packed

    def sum_with(self, others: Iterable[LazyBlame]) -> Sequence[Blame]:
        sums: Counter[tuple[int, int, int]] = Counter()
        for blame in (self, *others):
            for entry in blame:
                sums[entry.holder] += entry.wait_s  # type: ignore[assignment]  # a float counts as well
        return tuple(
            Blame(tid=tid, site=site, wait_s=wait_s, through=through)
            for (tid, site, through), wait_s in sums.most_common()
        )

    def __len__(self) -> int:
        return len(self._packed.rows) // _ROW.size

    @overload
    def __getitem__(self, index: int) -> Blame: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Blame]: ...

    def __getitem__(self, index: int | slice) -> Blame | Sequence[Blame]:
        if isinstance(index, slice):
            return tuple([self[row] for row in range(*index.indices(len(self)))])
        row = range(len(self))[index]
        return self._blame(*_ROW.unpack_from(self._packed.rows, row * _ROW.size))

    def __iter__(self) -> Iterator[Blame]:
        for row in _ROW.iter_unpack(self._packed.rows):
            yield self._blame(*row)

    def _blame(self, origin: int, tid: int, ticks: int) -> Blame:
        site, through = self._packed.origins[origin]
        return Blame(tid=tid, site=site, wait_s=ticks / self._packed.hz, through=through)
