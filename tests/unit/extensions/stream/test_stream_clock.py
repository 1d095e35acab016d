"""The times of a sender as times here."""

from __future__ import annotations

from locktop.collector.extensions.stream.stream_clock import StreamClock

_S = 1_000_000_000
_HERE = 1_790_000_000 * _S


def test_the_times_of_an_equal_clock_stay() -> None:
    now = [_HERE]
    clock = StreamClock(lambda: now[0])
    for delay_s in (0, 1, 4, 0):
        now[0] += 10 * _S
        assert clock.frame_ns(now[0] - delay_s * _S) == now[0] - delay_s * _S
    assert clock.earlier_ns(now[0] - 100 * _S) == now[0] - 100 * _S


def test_another_clock_is_moved_by_one_constant() -> None:
    now = [_HERE]
    clock = StreamClock(lambda: now[0])
    assert clock.frame_ns(3 * _S) == _HERE
    now[0] += 5 * _S
    assert clock.frame_ns(6 * _S) == _HERE + 3 * _S, "this frame was 2 s on its way"
    assert clock.earlier_ns(2 * _S) == _HERE - _S


def test_a_clock_that_is_set_or_forged_is_moved_anew() -> None:
    clock = StreamClock(lambda: _HERE)
    assert clock.frame_ns(_HERE) == _HERE
    for sent_ns in (_HERE + 3600 * _S, _HERE - 3600 * _S, _HERE, 0):
        assert clock.frame_ns(sent_ns) == _HERE
    assert clock.frame_ns((1 << 63) - 1) == _HERE
    assert clock.earlier_ns(1 << 62) <= _HERE + 5 * _S
    assert clock.earlier_ns(0) >= 0
