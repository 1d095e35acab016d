"""Names for code that was compiled at run time and lies in no file."""

from __future__ import annotations

from collections.abc import Sequence

from locktop.collector.model import Frame
from locktop.collector.sanitize import clean
from locktop.collector.symbols.jit.jitdump import JitDump, JitFunction
from locktop.collector.symbols.jit.perf_map import PerfMap
from locktop.collector.symbols.memory_map import Mapping

#: The module of such code.
JIT = "jit"


class JitCode:
    """The code of JIT compilers in one process: from a jitdump with lines, else a perf map."""

    def __init__(self, pid: int) -> None:
        self._dump = JitDump(pid)
        self._map = PerfMap(pid)

    def frame(self, address: int, mappings: Sequence[Mapping]) -> Frame | None:
        """Return the frame of a return address; None if no file names it (yet)."""
        call = address - 1
        function = self._dump.find(call, mappings)
        if function is None:
            name = self._map.find(call)
            function = None if name is None else JitFunction(name, None, None)
        if function is None:
            return None
        file = clean(function.file) if function.file else None
        return Frame(
            address=address,
            function=clean(function.function),
            file=file,
            line=function.line,
            module=JIT,
            offset=address,
        )

    def notes(self) -> list[str]:
        """Return lines for the user about files that cannot be read."""
        return [note for note in (self._dump.note, self._map.note) if note]

    def read_no_more(self) -> None:
        """Read no file any more: the process has ended."""
        self._dump.read_no_more()
        self._map.read_no_more()

    def close(self) -> None:
        """Close the files."""
        self._dump.close()
        self._map.close()
