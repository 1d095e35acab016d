"""The steps of the waits of threads that lead to other processes, for the tree of blockers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from locktop.collector.extensions.why import reading
from locktop.collector.extensions.why.model import Chain
from locktop.collector.extensions.why.words import WhyWords
from locktop.tui.extension_parts import StepElsewhere


def read(pid: int, tids: Sequence[int]) -> Mapping[int, Sequence[StepElsewhere]]:
    """Return the steps of each thread whose wait leads to another process.

    Args:
        pid: the process of the threads.
        tids: as the process itself has them; 0 for its first thread.
    """
    answer, chains = reading.why_threads(pid, tids)
    words = WhyWords(answer)
    return {
        tid: tuple(_steps(chain, words))
        for tid, chain in chains.items()
        if any(step.thread.pid != pid for step in chain.steps)
    }


def _steps(chain: Chain, words: WhyWords) -> Iterator[StepElsewhere]:
    before = None
    for step in chain.steps:
        who = words.thread(step) if before is None else words.relation(before, step)
        yield StepElsewhere(step.thread.pid, f"{who}: {words.does(step)}")
        before = step
    if chain.back_to >= 0:
        target = chain.steps[chain.back_to]
        yield StepElsewhere(target.thread.pid, f"back to {words.thread(target)}")
