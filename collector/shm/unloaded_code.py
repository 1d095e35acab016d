"""Where code was that the target unloaded with dlclose()."""

from __future__ import annotations

from locktop.collector.native import lib
from locktop.collector.shm import layout
from locktop.collector.shm.segment import SharedMemory

_MAX_RANGES: int = lib.LT_UNLOADED_RANGES


class UnloadedCode:
    """The ranges of addresses in one file. Other code may be there by now."""

    def __init__(self, memory: SharedMemory) -> None:
        self._memory = memory
        self._ranges: list[layout.CodeRange] = []
        self._is_complete = True

    def refresh(self) -> None:
        """Read the ranges. Raises LocktopError for a damaged file."""
        data = self._memory.read(layout.UNLOADED_AT, layout.UNLOADED_SIZE)
        count = layout.UNLOADED.unpack(data).count
        ranges = layout.CODE_RANGE.each(data[layout.UNLOADED_RANGES_AT :])
        self._ranges = ranges[:count]
        self._is_complete = count <= _MAX_RANGES and all(
            code_range.end for code_range in self._ranges
        )

    def may_have_had(self, address: int) -> bool:
        """Return whether unloaded code may have been at an address."""
        return not self._is_complete or any(
            code_range.start <= address < code_range.end for code_range in self._ranges
        )
