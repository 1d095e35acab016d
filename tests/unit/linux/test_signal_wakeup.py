"""The sleep of a loop that signals end."""

from __future__ import annotations

import sys
import threading

from locktop.collector.linux.signal_wakeup import SignalWakeup

_LONG_S = 600.0


def test_a_call_before_the_sleep_ends_it_once() -> None:
    wakeup = SignalWakeup()
    for _ in range(3):
        wakeup.wake()
    wakeup.sleep(_LONG_S)
    wakeup.sleep(0.0)


def test_another_thread_ends_the_sleep() -> None:
    wakeup = SignalWakeup()
    waker = threading.Thread(target=wakeup.wake)
    waker.start()
    wakeup.sleep(_LONG_S)
    waker.join()


def test_a_handler_may_interrupt_the_sleep_anywhere() -> None:
    """The profiler calls the handler at each call within the sleep, as a signal may."""
    wakeup = SignalWakeup()

    def sleep() -> None:
        sys.setprofile(lambda *_: wakeup.wake())
        wakeup.sleep(0.01)
        sys.setprofile(None)

    sleeper = threading.Thread(target=sleep, daemon=True)
    sleeper.start()
    sleeper.join(60.0)
    assert not sleeper.is_alive(), "the handler waits for a lock that the sleeper has"
