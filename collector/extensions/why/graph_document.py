"""The chains as a graph for Graphviz: a box for each thread, an arrow to whom it waits for."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.extensions.why.model import WhyAnswer
from locktop.collector.extensions.why.words import WhyWords
from locktop.collector.render.graph import dot
from locktop.collector.sanitize import clean

#: Characters of a line on a drawing.
_LONGEST = 80


def render(answer: WhyAnswer) -> str:
    """Return the graph as DOT."""
    return "\n".join(["digraph why {", *dict.fromkeys(_lines(answer)), "}", ""])


def _lines(answer: WhyAnswer) -> Iterator[str]:
    words = WhyWords(answer)
    yield f"  label={_label(*map(words.heading, answer.chains))};"
    for chain in answer.chains:
        for step in chain.steps:
            label = _label(words.thread(step), words.location(step))
            yield f"  t{step.thread.tid} [shape=box, label={label}];"
        following = list(chain.steps[1:])
        if chain.back_to >= 0:
            following.append(chain.steps[chain.back_to])
        for step, target in zip(chain.steps, following, strict=False):
            role = step.awaited.role if step.awaited is not None else ""
            label = _label(words.does(step), role)
            yield f"  t{step.thread.tid} -> t{target.thread.tid} [label={label}];"


def _label(*lines: str) -> str:
    return dot.quoted([clean(line, _LONGEST) for line in lines if line])
