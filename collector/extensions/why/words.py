"""The answer of ``locktop why`` in words: one paragraph, then the chain step by step."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from locktop.collector.extensions.why.call_waits import TIME_LIMIT
from locktop.collector.extensions.why.file_ends import OTHER_END, SERVER
from locktop.collector.extensions.why.model import (
    ANY_THREAD,
    UNTOLD,
    Awaited,
    Chain,
    ChainStep,
    WhyAnswer,
    WhyVerdict,
)
from locktop.collector.render.words.source_location import short_location
from locktop.collector.render.words.units import counted, lasting
from locktop.collector.sanitize import clean

#: Clauses about providers of a role that say more than the role.
_VERBS = {
    "holder": "has it",
    "likely holder": "probably has it",
    SERVER: "has not accepted the connection yet",
}
#: The clause before names such a provider already.
_NAMED_BEFORE = ("child", "process", "tracer")
_HEADINGS = {
    WhyVerdict.DEADLOCK: "deadlock",
    WhyVerdict.POSSIBLE: "possible deadlock",
    WhyVerdict.WAITS: "no deadlock",
    WhyVerdict.NONE: "no wait",
}
_STATES = {
    "R": "runs",
    "D": "is asleep in the kernel, and nothing wakes it but the kernel",
    "T": "is stopped",
    "t": "is stopped",
}
_MAX_LENGTH = 400


class WhyWords:
    """The words about one answer."""

    def __init__(self, answer: WhyAnswer) -> None:
        self._answer = answer

    def heading(self, chain: Chain) -> str:
        """Return the verdict, with the process."""
        return f"{_HEADINGS[chain.verdict]}: {self.process(chain.pid)}"

    def process(self, pid: int) -> str:
        """Return a process as "convert 4802"."""
        return clean(self._answer.names.get(pid, f"process {pid}"))

    def thread(self, step: ChainStep, beside: int = 0) -> str:
        """Return a thread with its process; without it if that is ``beside``, a pid."""
        thread = step.thread
        if thread.tid == thread.pid:
            return self.process(thread.pid)
        name = f"{clean(self._answer.thread_names.get(thread.tid) or thread.name)} {thread.tid}"
        return name if thread.pid == beside else f"{name} of {self.process(thread.pid)}"

    def paragraph(self, chain: Chain) -> str:
        """Return the way to the root in one sentence."""
        return "; ".join([*self._clauses(chain), self._end(chain)]) + "."

    def location(self, step: ChainStep) -> str:
        """Return where in the code a thread is; "" if that is not known."""
        frames = step.awaited.frames if step.awaited is not None else ()
        return clean(short_location(frames[0])) if frames else ""

    def does(self, step: ChainStep) -> str:
        """Return what a thread does, as a clause without its subject."""
        if step.awaited is None:
            return _STATES.get(step.thread.state, "runs")
        does = clean(step.awaited.does, _MAX_LENGTH)
        return _plural_verb(does) if step.threads_alike > 1 else does

    def since(self, step: ChainStep) -> str:
        """Return how long a wait for a lock has lasted; "" if that is not known."""
        awaited = step.awaited
        if awaited is None or not awaited.duration_s:
            return ""
        return f"for {lasting(awaited.duration_s, awaited.is_lower_bound)}"

    def subject(self, step: ChainStep, beside: int = 0) -> str:
        """Return a thread, or how many threads of its process do the same."""
        if step.threads_alike > 1:
            return counted(step.threads_alike, "thread")
        return self.thread(step, beside)

    def relation(self, before: ChainStep, step: ChainStep) -> str:
        """Return what a thread is to the one that waits for it, as "the only writer is ..."."""
        awaited = before.awaited
        assert awaited is not None
        who = self.thread(step, before.thread.pid)
        role, others = awaited.role, len(awaited.pids)
        if role in _VERBS:
            return f"{who} {_VERBS[role]}"
        if role in _NAMED_BEFORE and others == 1:
            return who
        if role == ANY_THREAD:
            return f"another thread is {who}"
        if others > 1:
            return f"one of {others} {_plural(role)} is {who}"
        return f"the other end is {who}" if role == OTHER_END else f"the only {role} is {who}"

    def _clauses(self, chain: Chain) -> Iterator[str]:
        first = chain.steps[0] if chain.steps else None
        if first is None:
            yield f"{self.process(chain.pid)} has no thread that locktop can see"
            return
        subject = self.subject(first, chain.pid)
        does = self.does(first)
        begin = (
            f"{self.process(chain.pid)}: {subject} "
            if subject != self.process(chain.pid)
            else f"{subject} "
        )
        yield begin + does
        for before, step in zip(chain.steps, chain.steps[1:], strict=False):
            yield self._clause(before, step)

    def _clause(self, before: ChainStep, step: ChainStep) -> str:
        relation, does = self.relation(before, step), self.does(replace(step, threads_alike=1))
        awaited = before.awaited
        assert awaited is not None
        if awaited.role in _VERBS:
            return f"{relation} and {does}"
        is_named = awaited.role in _NAMED_BEFORE and len(awaited.pids) == 1
        return f"{relation} {does}" if is_named else f"{relation}, which {does}"

    def _end(self, chain: Chain) -> str:
        if chain.verdict in (WhyVerdict.DEADLOCK, WhyVerdict.POSSIBLE):
            return self._circle(chain)
        last = chain.steps[-1] if chain.steps else None
        if last is None:
            return "nothing more is known"
        if last.awaited is None:
            return "it can go on"
        if chain.back_to >= 0:
            return self._open_circle(chain)
        return self._may_end(last.awaited)

    def _open_circle(self, chain: Chain) -> str:
        """A circle of waits of which one may end from outside, or by another thread."""
        waits = [step.awaited for step in chain.steps[chain.back_to :] if step.awaited is not None]
        other = next((wait.other_end for wait in waits if wait.other_end), "another thread")
        target = chain.steps[chain.back_to]
        again = "" if target is chain.steps[-1] else f"{self.relation(chain.steps[-1], target)}; "
        return f"{again}{clean(other)} may end one of these waits"

    def _circle(self, chain: Chain) -> str:
        may = (
            "nobody can go on"
            if chain.verdict is WhyVerdict.DEADLOCK
            else "perhaps nobody can go on"
        )
        last = chain.steps[-1]
        awaited = last.awaited
        assert awaited is not None
        if awaited.ended_holder:
            holder = f"thread {awaited.ended_holder}"
            return f"{holder} had it, and ended without a release: {may}"
        if chain.back_to < 0:
            return f"nobody else can end that: {may}"
        target = chain.steps[chain.back_to]
        if awaited.role in _NAMED_BEFORE and len(awaited.pids) == 1:
            return may
        if target is last:
            return f"nobody but itself could end that: {may}"
        return f"{self.relation(last, target)}: {may}"

    @staticmethod
    def _may_end(awaited: Awaited) -> str:
        other = awaited.other_end
        if not other:
            return "who could end that is not known"
        if other == TIME_LIMIT:
            return "it goes on by itself"
        if other == UNTOLD:
            return "a core does not say what that is"
        return f"{clean(other)} may end that"


def _plural(role: str) -> str:
    first, comma, rest = role.partition(",")
    return f"{first}{'ren' if first == 'child' else 's'}{comma}{rest}"


def _plural_verb(does: str) -> str:
    """Return a clause with the verb of several subjects."""
    verb, _, rest = does.partition(" ")
    verbs = {"is": "are", "does": "do"}
    return f"{verbs.get(verb, verb.removesuffix('s'))} {rest}".rstrip()
