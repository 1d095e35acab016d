"""Folded stacks: a line each, the outermost function first, for flame graph tools.

The last frame is the lock, and the number is nanoseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from locktop.collector.extensions.export.frame_words import NO_STACK, function_name
from locktop.collector.render.files import encoded

if TYPE_CHECKING:
    from locktop.collector.extensions.export.export_input import ExportInput


def render(export_input: ExportInput) -> Iterator[bytes]:
    """Yield the lines, the longest wait first. Raises LocktopError."""
    sums: Counter[str] = Counter()
    for sample in export_input.samples:
        names = [function_name(frame) for frame in reversed(sample.frames)]
        names = names or [NO_STACK]
        thread = [sample.thread] if sample.thread else []
        sums[";".join(map(_word, [*thread, *names, f"{sample.kind} {sample.lock}"]))] += sample.ns
    for line, ns in sums.most_common():
        yield encoded(f"{line} {ns}\n")


def _word(name: str) -> str:
    """Return a name without the character that divides frames."""
    return name.replace(";", ":")
