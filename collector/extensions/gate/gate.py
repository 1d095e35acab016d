"""Runs two programs in turns, and decides after 6, 9 and 12 pairs of runs.

The order is A B, B A, A B and so on. So a machine that slows down slowly changes both alike.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.gate import comparing, decision
from locktop.collector.extensions.gate.model import (
    Comparison,
    GateOutcome,
    GateResult,
    GateSide,
)
from locktop.collector.extensions.gate.run_figures import (
    ClassKey,
    ProgramRun,
    check,
    measure,
)
from locktop.collector.sources.launched_program import EndedEarlyError

#: Tries to attach to one run. The first one also waits for imports of locktop, and beside other
#: work a short program may end before locktop gets a CPU.
_MAX_TRIES = 3


class GateOptions(Struct, frozen=True):
    """The wishes of the user."""

    max_runs: int = decision.MAX_RUNS  # of each program
    min_change: float = 0.05  # the least change that counts, as in RelativeChange
    with_waits: bool = False  # whether the waits count for the gate


class Gate:
    """Compares B with A, or with the runs of A in an earlier result."""

    def __init__(
        self, a: GateSide, b: GateSide, options: GateOptions, baseline: GateResult | None = None
    ) -> None:
        """Args:
        a: the program that is known to be good.
        b: the program to judge.
        options: the wishes of the user.
        baseline: an earlier result whose runs of A replace those of ``a``.

        Raises:
            LocktopError: the baseline cannot answer.
        """
        if baseline is not None and options.min_change < decision.MIN_UNPAIRED_CHANGE:
            raise LocktopError(
                "a baseline has no pairs of runs, and two days differ by more than"
                f" {options.min_change:.0%}: give --change {decision.MIN_UNPAIRED_CHANGE * 100:.0f}"
                " or more, or compare two builds now with --vs"
            )
        self._a, self._b = a, b
        self._is_paired = baseline is None
        self._options = options
        self._a_runs = [] if baseline is None else comparing.baseline_runs(baseline)
        self._b_runs: list[ProgramRun] = []
        self._keys: list[ClassKey] | None = None  # the classes, chosen at the first test
        self._notes: list[str] = []
        self._comparisons: tuple[Comparison, ...] = ()
        self._levels = decision.test_levels(options.max_runs)
        self._began = time.monotonic()

    def run(self, on_run: Callable[[int], object]) -> GateResult:
        """Run both programs until the answer is clear, and return it.

        Ctrl+C ends the program that runs, and returns the answer so far.

        Args:
            on_run: is called before each run with the number of complete pairs.
        """
        with tempfile.TemporaryDirectory(prefix="locktop-gate-") as directory:
            try:
                return self._decide(Path(directory), on_run)
            except LocktopError as error:
                has_run = self._b_runs or (self._is_paired and self._a_runs)
                outcome = GateOutcome.FAILED if has_run else GateOutcome.NOTHING
                return self._result(outcome, str(error))
            except KeyboardInterrupt:
                self._judge()
                return self._result(GateOutcome.INTERRUPTED)

    def _decide(self, directory: Path, on_run: Callable[[int], object]) -> GateResult:
        a = _NamedSide("A", self._a, self._a_runs, directory)
        b = _NamedSide("B", self._b, self._b_runs, directory)
        sides = [a, b] if self._is_paired else [b]
        on_run(0)
        for side in sides:
            side.check()
        # The first run of a program fills the caches, and does not count.
        for side in sides:
            side.measure()
        for number in range(self._options.max_runs):
            for side in sides if number % 2 == 0 else reversed(sides):
                on_run(number)
                side.runs.append(side.measure())
            if number + 1 in self._levels:
                self._judge()
                if not self._keys:
                    break
                if decision.is_decided(self._comparisons, self._options.min_change):
                    break
        reason = ""
        if not self._keys:
            reason = comparing.why_nothing_counts(self._a_runs, self._b_runs)
        return self._result(decision.outcome(self._comparisons), reason)

    def _judge(self) -> None:
        """Judge the classes by the complete pairs."""
        count = len(self._b_runs)
        if self._is_paired:
            count = min(len(self._a_runs), count)
        a = self._a_runs[:count] if self._is_paired else self._a_runs
        b = self._b_runs[:count]
        if self._keys is None:
            self._keys, self._notes = comparing.choose(a, b)
        entries = comparing.comparisons(self._keys, a, b, self._options.with_waits)
        # Between two tests, as after Ctrl+C, nothing is decided.
        level = self._levels.get(count, min(self._levels.values()))
        self._comparisons = decision.judge(
            entries, level, self._options.min_change, self._is_paired
        )

    def _result(self, outcome: GateOutcome, reason: str = "") -> GateResult:
        own_runs = [*(self._a_runs if self._is_paired else ()), *self._b_runs]
        return GateResult(
            taken_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            duration_s=time.monotonic() - self._began,
            a=self._a,
            b=self._b,
            is_paired=self._is_paired,
            max_runs=self._options.max_runs,
            a_runs=len(self._a_runs),
            b_runs=len(self._b_runs),
            min_change=self._options.min_change,
            outcome=outcome,
            reason=reason,
            comparisons=self._comparisons,
            notes=(*self._notes, *comparing.notes_on_runs(own_runs)),
        )


class _NamedSide:
    """One of the programs with its runs. An error names the program and the run."""

    def __init__(self, name: str, side: GateSide, runs: list[ProgramRun], directory: Path) -> None:
        self._name, self._side, self._directory = name, side, directory
        self.runs = runs

    def check(self) -> None:
        """Check that the program can run with the library. Raises LocktopError."""
        try:
            check(self._side)
        except LocktopError as error:
            raise LocktopError(f"{self._name}: {error}") from None

    def measure(self) -> ProgramRun:
        """Run the program once. Raises LocktopError."""
        run = f"run {len(self.runs) + 1} of {self._name}"
        for tries_left in reversed(range(_MAX_TRIES)):
            output = self._directory / f"{self._name}{len(self.runs)}.{tries_left}"
            try:
                return measure(self._side, output)
            except EndedEarlyError as error:
                if not tries_left:
                    raise LocktopError(f"{run}: {error}") from None
            except LocktopError as error:
                raise LocktopError(f"{run}: {error}") from None
            finally:
                output.unlink(missing_ok=True)
        raise AssertionError("the last try returns or raises")
