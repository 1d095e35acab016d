"""The result of a gate. The JSON document has the same fields, see docs/gate.md."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from locktop.collector.model import Kind

#: A median or a mean of one run, seconds. The analysis takes logarithms.
_Seconds = Annotated[float, Meta(ge=1e-30, le=1e9)]


class Quantity(StrEnum):
    """The figure of a lock class that is compared."""

    HOLD = "hold"  # the median hold
    WAIT = "wait"  # the mean wait of an acquisition


class ClassVerdict(StrEnum):
    """The answer for one lock class."""

    SAME = "same"  # also a change below the least one that counts
    WORSE = "worse"
    BETTER = "better"
    UNCLEAR = "unclear"  # the noise may hide a large change


class GateOutcome(StrEnum):
    """The answer of the gate."""

    SAME = "same"
    WORSE = "worse"
    UNCLEAR = "not enough data"
    RED_CONTROL = "red control"
    FAILED = "failed"  # a run failed after others
    NOTHING = "nothing ran"
    INTERRUPTED = "interrupted"


_STATUS = {
    GateOutcome.SAME: 0,
    GateOutcome.WORSE: 1,
    GateOutcome.NOTHING: 3,
    GateOutcome.INTERRUPTED: 130,
}


class RelativeChange(Struct, frozen=True):
    """An estimated change with its interval. 0.2 is 20 % longer, -0.2 is 20 % shorter."""

    estimate: float
    low: float
    high: float


class Comparison(Struct, frozen=True, kw_only=True):
    """One quantity of one lock class."""

    name: str
    kind: Kind
    quantity: Quantity
    gates: bool  # whether its verdict counts for the gate
    share: float  # the part of all waits, or of all blame if that is more
    a_s: tuple[_Seconds | None, ...]  # by run; None: the run has no such hold or wait
    b_s: tuple[_Seconds | None, ...]
    change: RelativeChange | None  # None: too few runs have both
    verdict: ClassVerdict
    control: RelativeChange | None = None  # runs of A against runs of A
    is_control_red: bool = False


class GateSide(Struct, frozen=True):
    """One of the two programs."""

    command: tuple[str, ...]
    environment: tuple[str, ...] = ()  # variables as NAME=VALUE, beside those of locktop


class GateResult(Struct, frozen=True, kw_only=True, tag_field="format", tag="locktop.gate"):
    """The runs of a gate, and its answer."""

    version: int = 1
    taken_at: str  # ISO 8601, UTC
    duration_s: float
    a: GateSide
    b: GateSide
    is_paired: bool  # False: A is a baseline of an earlier gate
    max_runs: int  # of each program
    a_runs: int
    b_runs: int
    min_change: float  # the least change that counts, as in RelativeChange
    outcome: GateOutcome
    reason: str = ""  # of an outcome that no comparison shows
    comparisons: tuple[Comparison, ...] = ()  # the greatest share first
    notes: tuple[str, ...] = ()

    @property
    def status(self) -> int:
        """The exit status: 0 same, 1 worse, 2 no answer, 3 nothing ran."""
        return _STATUS.get(self.outcome, 2)
