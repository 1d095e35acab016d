"""All stacks as plain text, for a ticket."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.extensions.stacks.model import AllStacks, StackGroup
from locktop.collector.extensions.stacks.words import StackWords
from locktop.collector.render.words import units
from locktop.collector.render.words.source_location import full_location
from locktop.collector.render.words.wrap import wrapped

#: The note on a stack that was read while its threads went on.
LATER_NOTE = "read a moment after the other stacks, for it went on"
_MIN_WIDTH = 40


def render(stacks: AllStacks, width: int = 100) -> str:
    """Return the page; no line is longer than ``width``, at least 40."""
    width = max(width, _MIN_WIDTH)
    return "".join(f"{part}\n" for line in _lines(stacks) for part in wrapped(line, width))


def heading(stacks: AllStacks, words: StackWords) -> str:
    """Return how many threads and stacks there are, and what the threads do."""
    threads = units.counted(stacks.count, "thread")
    groups = units.counted(len(stacks.groups), "group")
    counts = words.counts()
    return f"{threads} in {groups}" + (f": {counts}" if counts else "")


def group_lines(stacks: AllStacks, group: StackGroup, words: StackWords) -> Iterator[str]:
    """Yield one group: its threads, what they wait for, and their stack."""
    number = len(group.threads)
    if number == 1:
        name = f" ({group.name})" if group.name else ""
        yield f"thread {words.threads(group)}{name}, {group.state}"
    else:
        yield f"{number} threads, {group.state}: {words.name(group)}"
    if number > 1:
        yield f"  {words.threads(group)}"
    yield from (f"  {line}" for line in words.what(group))
    if group.missing:
        yield f"  its stack is not known: {group.missing}"
    for frame in group.frames:
        yield "      " + full_location(frame) + (" (inlined)" if frame.inlined else "")
    if group.is_later:
        yield f"  {LATER_NOTE}"


def _lines(stacks: AllStacks) -> Iterator[str]:
    snapshot, words = stacks.snapshot, StackWords(stacks)
    process = snapshot.process
    yield f"all stacks of {process.comm} {process.pid} on {snapshot.host}, {snapshot.taken_at}"
    yield heading(stacks, words)
    if snapshot.ended:
        yield "the process has ended; these are the stacks of its last scan"
    for group in stacks.groups:
        yield ""
        yield from group_lines(stacks, group, words)
    if snapshot.notes:
        yield from ("", "NOTES", *(f"  {note}" for note in snapshot.notes))
