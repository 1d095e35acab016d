"""The answer as plain text: for each process the verdict, a sentence, and the chain."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from locktop.collector.extensions.why.model import Chain, WhyAnswer, WhyVerdict
from locktop.collector.extensions.why.words import WhyWords
from locktop.collector.render.words.wrap import wrapped

_MIN_WIDTH = 40
#: The first process hides its files in a container; its pipes are of no other program.
_INIT = 1


def render(answer: WhyAnswer, width: int = 100) -> str:
    """Return the page; no line is longer than ``width``, at least 40."""
    width = max(width, _MIN_WIDTH)
    return "".join(f"{part}\n" for line in _lines(answer) for part in wrapped(line, width))


def _lines(answer: WhyAnswer) -> Iterator[str]:
    words = WhyWords(answer)
    for number, chain in enumerate(answer.chains):
        if number:
            yield ""
        yield words.heading(chain)
        yield words.paragraph(chain)
        if chain.verdict is not WhyVerdict.NONE:
            yield ""
            yield from _tree(chain, words)
        for doubt in chain.doubts if chain.verdict is WhyVerdict.POSSIBLE else ():
            yield f"not certain: {doubt}"
    for note in answer.notes:
        yield ""
        yield f"note: {note}"
    if not answer.chains:
        yield f"no deadlock found: {answer.scanned} processes were looked at"
    if set(answer.hidden) - {_INIT} and not _is_certain(answer):
        count = f"{len(answer.hidden)} process{'es' * (len(answer.hidden) != 1)}"
        yield ""
        yield f"The kernel hides {count} from this user; root sees more."


def _tree(chain: Chain, words: WhyWords) -> Iterator[str]:
    before = None
    for depth, step in enumerate(chain.steps):
        if before is None:
            who, does = words.subject(step), words.does(step)
        else:
            who, does = words.relation(before, step), words.does(replace(step, threads_alike=1))
        parts = (words.since(step), words.location(step))
        details = "".join(f", {part}" for part in parts if part)
        yield f"{'  ' * depth}{who}: {does}{details}"
        before = step
    if chain.back_to >= 0:
        depth, target = len(chain.steps), chain.steps[chain.back_to]
        yield f"{'  ' * depth}back to {words.thread(target)}"


def _is_certain(answer: WhyAnswer) -> bool:
    return all(chain.verdict is WhyVerdict.DEADLOCK for chain in answer.chains)
