"""All waits as a graph for Graphviz: a frame for each process, in it a box for threads alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from locktop.collector.extensions.why.model import DEADLOCKED, WaitGroup, WhyAnswer
from locktop.collector.extensions.why.words import WhyWords
from locktop.collector.render.graph import dot
from locktop.collector.sanitize import clean

#: Characters of a line on a drawing.
_LONGEST = 80


def render(answer: WhyAnswer) -> str:
    """Return the graph as DOT. An arrow leads to who could end a wait; a deadlock is red."""
    headings = "\n".join(map(WhyWords(answer).heading, answer.chains))
    begin = ("digraph why {", "  compound=true;", "  node [shape=box];")
    label = f"  label={_dot_text(headings)};"
    return "\n".join([*begin, label, *_Graph(answer).lines(), "}", ""])


class _Graph:
    def __init__(self, answer: WhyAnswer) -> None:
        self._words = WhyWords(answer)
        self._stuck = {
            step.thread.tid
            for chain in answer.chains
            if chain.verdict in DEADLOCKED
            for step in chain.steps
        }
        self._groups: dict[int, list[WaitGroup]] = defaultdict(list)
        self._group_of: dict[int, WaitGroup] = {}
        for group in answer.waits:
            self._groups[group.threads[0].pid].append(group)
            self._group_of |= dict.fromkeys((thread.tid for thread in group.threads), group)
            for pid in group.awaited.pids:
                self._groups.setdefault(pid, [])

    def lines(self) -> Iterator[str]:
        """Yield the frames with their boxes, then the arrows."""
        for pid, groups in self._groups.items():
            yield f"  subgraph cluster_{pid} {{"
            yield f"    label={_dot_text(self._words.process(pid))};"
            yield f"    p{pid} [shape=point, style=invis];"
            for group in groups:
                style = ", color=red" if self._is_stuck(group) else ""
                yield f"    {_node(group)} [label={_dot_text(self._label(group))}{style}];"
            yield "  }"
        for groups in self._groups.values():
            for group in groups:
                yield from self._arrows(group)

    def _is_stuck(self, group: WaitGroup) -> bool:
        return any(thread.tid in self._stuck for thread in group.threads)

    def _label(self, group: WaitGroup) -> str:
        first, *others = group.threads
        name = f"{clean(first.name)} {first.tid}" + (f" and {len(others)} more" if others else "")
        other = group.awaited.other_end
        return "\n".join([name, group.awaited.does, *([f"or {other}"] if other else [])])

    def _arrows(self, group: WaitGroup) -> Iterator[str]:
        """Yield an arrow to each box with a provider, or to a process all of whose threads are."""
        awaited = group.awaited
        style = ", color=red" if self._is_stuck(group) else ""
        targets = {_node(self._group_of[tid]) for tid in awaited.providers if tid in self._group_of}
        pids: tuple[int, ...] = ()
        if len(targets) > 1 or not targets:
            targets, pids = set(), awaited.pids
        label = _dot_text(awaited.role)
        for target in sorted(targets):
            yield f"  {_node(group)} -> {target} [label={label}{style}];"
        for pid in pids:
            # An arrow cannot end at the frame that it begins in.
            frame = "" if pid == group.threads[0].pid else f"lhead=cluster_{pid}, "
            yield f"  {_node(group)} -> p{pid} [{frame}label={label}{style}];"


def _node(group: WaitGroup) -> str:
    return f"t{group.threads[0].tid}"


def _dot_text(text: str) -> str:
    return dot.quoted([clean(line, _LONGEST) for line in text.split("\n")])
