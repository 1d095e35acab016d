"""One signal that arrives twice, and a second one."""

from __future__ import annotations

from locktop.collector.recording.second_signal import AT_ONCE_S, SecondSignal


def test_signals_at_once_are_one() -> None:
    clock = [100.0]
    signals = SecondSignal(lambda: clock[0])
    assert not signals.arrives()
    assert not signals.arrives()
    clock[0] += AT_ONCE_S / 2
    assert not signals.arrives()
    clock[0] += AT_ONCE_S
    assert signals.arrives()
    assert signals.arrives()
