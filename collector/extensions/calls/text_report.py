"""The function calls of a process, as a page of plain text: a list of functions, then the tree."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.extensions.calls.calls_profile import CallsProfile, call_notes
from locktop.collector.extensions.calls.function_calls import (
    ENDED,
    CallSum,
    FunctionSum,
    functions,
    names_of,
)
from locktop.collector.render.text.call_tree import SMALLEST, named
from locktop.collector.render.words import units
from locktop.collector.render.words.wrap import wrapped
from locktop.collector.sanitize import clean

_FIGURE = 13
_MIN_NAME = 20
#: Functions of the list beside the tree.
_MAX_FUNCTIONS = 30


def render(profile: CallsProfile, flat: bool = False, width: int = 100) -> str:
    """Return the list of functions and the tree; with ``flat`` the whole list, without a tree."""
    lines = _CallsPage(profile, width).lines(flat)
    return "\n".join(part for line in lines for part in wrapped(line, width)) + "\n"


class _CallsPage:
    def __init__(self, profile: CallsProfile, width: int) -> None:
        self._profile = profile
        self._calls = profile.calls
        self._width = width

    def lines(self, flat: bool) -> Iterator[str]:
        sums = functions(self._calls.root)
        yield from self._head(sums)
        yield from ("", "FUNCTIONS, by own time")
        yield self._titles()
        for function in sums if flat else sums[:_MAX_FUNCTIONS]:
            yield self._line(function, function.own_s, 0)
        if len(sums) > _MAX_FUNCTIONS and not flat:
            more = units.counted(len(sums) - _MAX_FUNCTIONS, "function")
            yield f"{more} more; --flat lists all"
        if not flat:
            yield from ("", "CALL TREE")
            yield self._titles()
            yield from self._tree()
        notes = call_notes(self._calls)
        if notes:
            yield from ("", "NOTES", *(f"  {note}" for note in notes))

    def _head(self, sums: list[FunctionSum]) -> Iterator[str]:
        calls = sum(function.count for function in sums)
        says = f"{calls:,} call{'s' * (calls != 1)}"
        yield f"locktop calls: {self._profile.title}"
        yield (
            f"{says} of {units.counted(len(sums), 'function')};"
            f" {units.duration(self._calls.traced_s)} in counted functions, in {self._threads()}"
        )

    def _threads(self) -> str:
        tid = self._profile.tid
        if tid is not None:
            name = names_of(self._profile.snapshot).get(tid, "")
            return name if tid == ENDED else f"thread {tid} ({clean(name)})"
        alive = [thread for thread in self._calls.threads if thread != ENDED]
        ended = ", and ended threads" if len(alive) < len(self._calls.threads) else ""
        return f"{units.counted(len(alive), 'thread')}{ended}"

    def _titles(self) -> str:
        figures = "".join(f"{title:>{_FIGURE}}" for title in ("total", "own", "lock wait"))
        return f"{'share':>8}{'calls':>{_FIGURE}}{figures}  function"

    def _tree(self) -> Iterator[str]:
        """Yield the lines of the tree. Only the several callees of a function are indented."""
        left_out = 0
        root = self._calls.root
        line = [(child, 0, "") for child in reversed(_callees(root))]
        while line:
            node, indent, mark = line.pop()
            if node.total_s < self._calls.traced_s * SMALLEST:
                left_out += 1
                continue
            yield self._line(node, node.total_s, indent, mark)
            below = _callees(node)
            further = indent + (1 if mark else 0)
            line += [(child, further, "+ " * (len(below) > 1)) for child in reversed(below)]
        if left_out:
            few = "1 branch" if left_out == 1 else f"{left_out} branches"
            yield f"{few} under {100 * SMALLEST:.1f} % left out; --format json has all"

    def _line(
        self, entry: CallSum | FunctionSum, part_s: float, indent: int, mark: str = ""
    ) -> str:
        whole = self._calls.traced_s
        times = "".join(
            f"{units.duration(time):>{_FIGURE}}"
            for time in (entry.total_s, entry.own_s, entry.wait_s)
        )
        share = units.percent(part_s / whole if whole > 0 else 0.0)
        before = f"{share:>8}{entry.count:>{_FIGURE},}{times}  "
        room = max(_MIN_NAME, self._width - len(before) - len(mark))
        inward = "  " * min(indent, (room - _MIN_NAME) // 2) + mark
        name = named(entry.step, entry.location) + (", in a call now" if entry.active else "")
        return before + inward + clean(name, max(_MIN_NAME, room - len(inward)))


def _callees(node: CallSum) -> list[CallSum]:
    return sorted(
        node.children.values(), key=lambda child: (-child.total_s, -child.count, child.step)
    )
