"""Running threads are sampled few after few, as long as there is time."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from locktop.collector.sources.probes import native_stacks
from locktop.collector.sources.probes.native_stacks import NativeStacks
from locktop.collector.symbols.unwind.cursor import Unwound
from locktop.collector.symbols.unwind.perf_sample import MAX_SAMPLED, RefusedError

TIDS = list(range(100, 100 + 3 * MAX_SAMPLED))


class FakeUnwinder:
    """Every thread has the stack of its id; a call takes a second of the clock."""

    def __init__(self, clock: list[float]) -> None:
        self._clock = clock
        self.calls: list[Sequence[int]] = []
        self.refusal = ""

    def running_stacks(self, tids: Sequence[int], patience_s: float) -> dict[int, Unwound]:
        self.calls.append(tids)
        self._clock[0] += 1.0
        if self.refusal:
            raise RefusedError(self.refusal)
        return {tid: Unwound((tid,), complete=True, reason="") for tid in tids}

    def stopped_stack(self, tid: int) -> Unwound:
        return Unwound((tid,), complete=True, reason="")


def stacks(
    monkeypatch: pytest.MonkeyPatch, refusal: str = "", may_stop: bool = False
) -> tuple[NativeStacks, FakeUnwinder]:
    clock = [0.0]
    monkeypatch.setattr(native_stacks, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    unwinder = FakeUnwinder(clock)
    unwinder.refusal = refusal
    monkeypatch.setattr("locktop.collector.symbols.unwind.unwinder.Unwinder", lambda _: unwinder)
    return NativeStacks(1, None, may_stop), unwinder  # type: ignore[arg-type]


@pytest.mark.parametrize(("budget_s", "calls"), [(0.0, 1), (1.5, 2), (9.0, 3)])
def test_threads_are_sampled_until_the_time_is_over(
    budget_s: float, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, unwinder = stacks(monkeypatch)
    assert list(made.running(TIDS, budget_s)) == TIDS[: calls * MAX_SAMPLED]
    assert len(unwinder.calls) == calls
    assert max(map(len, unwinder.calls)) == MAX_SAMPLED


def test_a_refusal_ends_the_sampling(monkeypatch: pytest.MonkeyPatch) -> None:
    made, unwinder = stacks(monkeypatch, refusal="perf_event_paranoid is 4")
    assert not made.running(TIDS, 9.0)
    assert len(unwinder.calls) == 1
    assert made.refused == "perf_event_paranoid is 4"


def test_threads_that_may_be_stopped_are_all_read_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = stacks(monkeypatch, refusal="perf_event_paranoid is 4", may_stop=True)
    assert list(made.running(TIDS, 9.0)) == TIDS
    assert not made.refused
