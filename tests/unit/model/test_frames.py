"""Which frames belong to the standard library of a language."""

from __future__ import annotations

import pytest

from locktop.collector.model import Frame
from locktop.collector.model.frames import is_standard_library


def frame(function: str, file: str | None = None, module: str = "store") -> Frame:
    return Frame(0x1000, function, file, None, module, 0)


@pytest.mark.parametrize(
    "given",
    [
        frame("std::mutex::lock()"),
        frame("void std::__invoke_impl<void, my::Job>(std::__invoke_other, my::Job&&)"),
        frame("std::thread::_State_impl<std::thread::_Invoker<int> >::_M_run()"),
        frame("__gthread_mutex_lock", "/usr/include/x86_64-linux-gnu/c++/12/bits/gthr-default.h"),
        frame("__glibcxx_rwlock_wrlock", "/usr/include/c++/12/shared_mutex"),
        frame("<std::sync::mutex::Mutex<T> as core::fmt::Debug>::fmt"),
        frame("core::ops::function::FnOnce::call_once", "/rustc/9fc/library/core/src/ops/fn.rs"),
        frame("std::sys::thread::start", "library/std/src/sys/thread.rs"),
        frame("start_thread", module="libc.so.6"),
        frame("std::execute_native_thread_routine", module="libstdc++.so.6"),
        frame("Thread.run", "/usr/lib/python3.11/threading.py", "python3.11"),
        frame("_find_and_load", "<frozen importlib._bootstrap>", "python3.11"),
        frame("sync.(*Mutex).Lock"),
    ],
    ids=lambda given: given.function,
)
def test_a_frame_of_the_standard_library(given: Frame) -> None:
    assert is_standard_library(given)


@pytest.mark.parametrize(
    "given",
    [
        frame("cache_get", "/src/store/cache.c"),
        frame("std::string my::name<int>(int)"),
        frame("my::Pool::take(std::mutex&)"),
        frame("<my::Pool as core::ops::Drop>::drop"),
        frame("core::Engine::run()", "/src/core/engine.cc"),
        frame("operator<<(my::Log&, int)"),
        frame("standard::run"),
        frame("get", "/usr/lib/python3/dist-packages/requests/api.py", "python3.11"),
        frame("get", "/home/me/.venv/lib/python3.11/site-packages/requests/api.py"),
        frame("", module="libplugin.so"),
        frame("", module=""),
    ],
    ids=lambda given: given.function,
)
def test_a_frame_of_the_program(given: Frame) -> None:
    assert not is_standard_library(given)
