"""The table of predictions of `locktop whatif` beside the truth (docs/whatif.md)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

#: Changes whose truths differ by less are equally good.
_SAME = 0.03


class Result(NamedTuple):
    """One prediction and its truth: the throughput as a multiple of the unchanged program's."""

    program: str
    change: str
    predicted: float
    low: float
    high: float
    truth: float

    @property
    def error(self) -> float:
        return self.predicted / self.truth - 1


class Table:
    """The results of all programs."""

    def __init__(self) -> None:
        self._results: list[Result] = []
        self._refused: list[str] = []
        self._best: list[bool] = []  # by program

    def refuse(self, program: str, reason: str, note: str = "") -> None:
        """Count and print a refusal."""
        self._refused.append(f"{program}: {reason}")
        print(f"{program:12} refused: {reason} {note}", flush=True)

    def add(self, results: Sequence[Result], note: str = "") -> None:
        """Count and print the predictions of one program."""
        for one in results:
            covers = "in" if one.low <= one.truth <= one.high else "OUT"
            print(
                f"{one.program:12} {one.change:12} predicted {one.predicted:5.2f}"
                f" ({one.low:5.2f} to {one.high:5.2f}) truth {one.truth:5.2f}"
                f" error {one.error:+6.1%} {covers:3} {note}",
                flush=True,
            )
        if results:
            self._best.append(_is_best_named(results))
        self._results += results

    def print_summary(self) -> None:
        """Print how good the predictions are."""
        errors = sorted(abs(one.error) for one in self._results)
        if not errors:
            raise SystemExit("all programs were refused")
        inside = sum(one.low <= one.truth <= one.high for one in self._results)
        print(f"\npredictions {len(errors)}, refusals {len(self._refused)}")
        print(f"median error {statistics.median(errors):.1%}, nine in ten {_ninth(errors):.1%}")
        print(f"interval has the truth: {inside} of {len(errors)}")
        print(f"best change named: {sum(self._best)} of {len(self._best)}")
        for one in self._refused:
            print(f"refused {one}")


def _is_best_named(results: Sequence[Result]) -> bool:
    best = max(results, key=lambda one: one.predicted)
    return best.truth >= max(one.truth for one in results) * (1 - _SAME)


def _ninth(errors: Sequence[float]) -> float:
    return errors[min(len(errors) - 1, len(errors) * 9 // 10)]
