"""The threads of this process by their descriptors."""

from __future__ import annotations

import os
import threading

from locktop.collector.linux.thread_descriptor import tids_of


def test_a_thread_is_known_by_what_pthread_self_returned() -> None:
    assert tids_of(os.getpid(), [threading.get_ident()]) == {
        threading.get_ident(): threading.get_native_id()
    }


def test_another_address_is_no_thread() -> None:
    others = [0, 1, -1, 1 << 63, threading.get_ident() + 16, id(threading)]
    assert tids_of(os.getpid(), others) == {}
