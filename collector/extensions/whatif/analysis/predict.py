"""Predicts the throughput after changes, with an interval, or refuses."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from locktop.collector.extensions.whatif.analysis.changes import changed
from locktop.collector.extensions.whatif.analysis.simulated_program import (
    Do,
    LockType,
    MakeSimulation,
    Program,
)
from locktop.collector.extensions.whatif.model import Change, Prediction

#: Rounds and operations of one simulation, about. Some programs have hundreds of calls a round.
_ROUNDS, _OPERATIONS = 4000, 150_000
#: The shortest and the longest simulated time, nanoseconds.
_MIN_SPAN_NS, _MAX_SPAN_NS = 50_000_000, 20_000_000_000
_WARM_UP = 0.3
#: So many more threads than before may wait for all the time, of all threads.
_MAX_STOPPED = 0.05
#: Times that the spans are drawn for the interval; its ends.
_DRAWS, _LOW, _HIGH = 400, 0.05, 0.95
#: The error of the model itself, as a share of the gain and of the throughput.
_MODEL_ERROR_OF_GAIN, _MODEL_ERROR = 0.10, 0.03


class Replay(NamedTuple):
    """One simulation."""

    rounds_per_s: dict[str, float]  # by group
    stopped: int  # threads that waited for all the time


class SpanReplays:
    """The simulations of one span: without a change, and after each."""

    def __init__(self, program: Program, simulator: MakeSimulation) -> None:
        self.program = program
        self._simulator = simulator
        rounds = sum(
            operation.do == Do.ROUND
            for thread in program.threads
            for operation in thread.operations
        )
        operations = sum(len(thread.operations) for thread in program.threads)
        spans = min(_ROUNDS / max(rounds, 1), _OPERATIONS / max(operations, 1))
        span_ns = program.span_ns * spans
        self._span_ns = round(min(max(span_ns, _MIN_SPAN_NS), _MAX_SPAN_NS))
        self.base = self.replay(program)

    def replay(self, program: Program, seed: int = 1) -> Replay:
        """Simulate a program."""
        simulation = self._simulator(program, seed)
        outcome = simulation.run(round(self._span_ns * _WARM_UP), self._span_ns)
        rates: dict[str, float] = {}
        for thread, rounds in zip(program.threads, outcome.rounds, strict=True):
            rates[thread.group] = rates.get(thread.group, 0.0) + rounds * 1e9 / outcome.span_ns
        return Replay(rates, outcome.stopped)

    def ratio_parts(self, change: Change) -> tuple[float, float] | None:
        """Return the rounds a second after a change, and before; None: threads stop after it."""
        after = self.replay(changed(self.program, change))
        if after.stopped > self.base.stopped + _MAX_STOPPED * len(self.program.threads):
            return None
        return sum(after.rounds_per_s.values()), sum(self.base.rounds_per_s.values())


def predict(spans: Sequence[SpanReplays], change: Change) -> Prediction | None:
    """Predict the throughput after a change; None: threads of the replay stop after it.

    Args:
        spans: at least one.
        change: of their programs.
    """
    replayed = [span.ratio_parts(change) for span in spans]
    parts = [replay for replay in replayed if replay is not None]
    if len(parts) < len(replayed):
        return None
    ratio = _ratio(parts)
    random = Random(1)
    drawn = sorted(_ratio(random.choices(parts, k=len(parts))) for _ in range(_DRAWS))
    error = _MODEL_ERROR * ratio + _MODEL_ERROR_OF_GAIN * abs(ratio - 1)
    limits = [
        bound(changed(span.program, change)) / max(sum(span.program.rounds_per_s.values()), 1e-9)
        for span in spans
    ]
    most = sum(limits) / len(limits)
    ratio = min(ratio, most)
    return Prediction(
        change=change,
        ratio=ratio,
        low=max(0.0, min(drawn[round(_LOW * _DRAWS)], most) - error),
        high=max(ratio, min(drawn[round(_HIGH * _DRAWS) - 1], most)) + error,
        bound=most,
    )


def _ratio(parts: Sequence[tuple[float, float]]) -> float:
    before = sum(base for _, base in parts)
    return sum(after for after, _ in parts) / before if before else 1.0


def bound(program: Program) -> float:
    """Return the most rounds a second. Groups of threads keep the shares of their rounds.

    X <= min(N / (Z + S), 1 / S_max, CPUs / D), as Denning and Buzen write (ACM Computing Surveys
    10, 1978). X is the throughput, and N is the number of threads. Z + S is the time of a round
    without any wait. S_max is the longest time for which a round holds one lock. D is the CPU time
    of a round.
    """
    rounds = cpu_ns = 0
    alone = 0.0  # rounds a nanosecond without any wait
    held_ns = [0] * len(program.locks)
    for thread in program.threads:
        own_rounds = own_ns = 0
        taken: set[int] = set()
        for do, lock, amount in thread.operations:
            if do == Do.ROUND:
                own_rounds += 1
            elif do == Do.TAKE:
                taken.add(lock)
            elif do == Do.RELEASE:
                taken.discard(lock)
            elif do in (Do.COMPUTE, Do.SLEEP):
                own_ns += amount
                cpu_ns += amount if do == Do.COMPUTE else 0
                for held_lock in taken:
                    held_ns[held_lock] += amount
        rounds += own_rounds
        alone += own_rounds / own_ns if own_ns else 0.0
    limits = [alone]
    limits += [rounds / held for held in _exclusive(program, held_ns) if held]
    if cpu_ns:
        limits.append(program.cpus * rounds / cpu_ns)
    return min(limits) * 1e9


def _exclusive(program: Program, held_ns: list[int]) -> list[int]:
    return [
        held
        for lock, held in zip(program.locks, held_ns, strict=True)
        if lock.type in (LockType.MUTEX, LockType.RWLOCK)
    ]
