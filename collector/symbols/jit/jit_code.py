"""Names for code that was compiled while the program runs, and that lies in no file."""

from __future__ import annotations

from collections.abc import Sequence

from locktop.collector.model import Frame
from locktop.collector.sanitize import clean
from locktop.collector.symbols.jit.jitdump import JitDump
from locktop.collector.symbols.jit.perf_map import PerfMap
from locktop.collector.symbols.memory_map import Mapping

#: The module of such code.
JIT = "jit"


class JitCode:
    """What the compilers in one process say about their code: a jitdump, which has lines, where
    there is one, else a perf map."""

    def __init__(self, pid: int) -> None:
        self._dump = JitDump(pid)
        self._map = PerfMap(pid)

    def frame(self, address: int, mappings: Sequence[Mapping]) -> Frame | None:
        """Return the frame of a return address; None where nothing is said about it (yet)."""
        call = address - 1
        found = self._dump.find(call, mappings)
        if found is None:
            name = self._map.find(call)
            found = None if name is None else (name, None, None)
        if found is None:
            return None
        function, file, line = found
        return Frame(address, clean(function), clean(file) if file else None, line, JIT, address)

    def notes(self) -> list[str]:
        """Return what is missing."""
        return [note for note in (self._dump.note, self._map.note) if note]

    def read_no_more(self) -> None:
        """Keep what is known: the process has ended."""
        self._dump.read_no_more()
        self._map.read_no_more()

    def close(self) -> None:
        """Close the files."""
        self._dump.close()
        self._map.close()
