"""Predicts the throughput after changes, with an interval, or refuses."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from locktop.collector.extensions.whatif.analysis.bounds import bound
from locktop.collector.extensions.whatif.analysis.changes import changed
from locktop.collector.extensions.whatif.analysis.simulated_program import (
    Do,
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
