"""The chains as a graph for Graphviz: a box for each process, an arrow to whom it waits for."""

from __future__ import annotations

from collections.abc import Iterator

from locktop.collector.extensions.why.model import WhyAnswer
from locktop.collector.extensions.why.words import WhyWords
from locktop.collector.sanitize import clean


def render(answer: WhyAnswer) -> str:
    """Return the graph as DOT."""
    return "\n".join(["digraph why {", *dict.fromkeys(_lines(answer)), "}", ""])


def _lines(answer: WhyAnswer) -> Iterator[str]:
    words = WhyWords(answer)
    for chain in answer.chains:
        for step in chain.steps:
            lines = (words.thread(step), words.location(step))
            label = "\\n".join(_dot_text(line) for line in lines if line)
            yield f'  t{step.thread.tid} [shape=box, label="{label}"];'
        following = list(chain.steps[1:])
        if chain.back_to >= 0:
            following.append(chain.steps[chain.back_to])
        for step, target in zip(chain.steps, following, strict=False):
            does = _dot_text(words.does(step))
            yield f'  t{step.thread.tid} -> t{target.thread.tid} [label="{does}"];'


def _dot_text(text: str) -> str:
    return clean(text).replace("\\", "\\\\").replace('"', '\\"')
