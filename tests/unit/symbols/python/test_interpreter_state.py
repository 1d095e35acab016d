"""The threads and frames of this process's own interpreter."""

from __future__ import annotations

import dis
import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from types import CodeType

import pytest

from locktop.collector.symbols.python.interpreter_state import (
    InterpreterState,
    OpenFrame,
    depth_at,
    find_state,
)


def nested(lock: threading.Lock, call: Callable[[], None]) -> None:
    with lock:
        for _ in range(1):
            try:
                call()
            finally:
                call()
    call()


def codes(code: CodeType) -> list[CodeType]:
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return [code, *(deeper for each in inner for deeper in codes(each))]


def test_the_table_of_exceptions_says_what_dis_says() -> None:
    with open(threading.__file__) as file:
        module = compile(file.read(), threading.__file__, "exec")
    seen = 0
    for code in codes(module):
        entries = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
        for unit in range(len(code.co_code) // 2):
            depths = [each.depth for each in entries if each.start <= 2 * unit < each.end]
            assert depth_at(code.co_exceptiontable, unit) == (depths or [0])[0]
            seen += bool(depths)
    assert seen


@pytest.mark.parametrize(
    "table",
    [b"", b"\x80", b"\xff" * 9, b"\x7f" * 99, bytes(range(256)), b"\x80\x01\x80\x01\x80\x01"],
)
def test_a_damaged_table_is_no_error(table: bytes) -> None:
    assert depth_at(table, 1) >= 0


def own_state() -> InterpreterState:
    state = find_state(os.getpid())
    assert state is not None
    return state


def test_values_of_open_blocks_are_read_and_no_others() -> None:
    state, lock = own_state(), threading.Lock()
    here, there = threading.Semaphore(0), threading.Semaphore(0)

    def pause() -> None:
        here.release()
        there.acquire()

    thread = threading.Thread(target=nested, args=(lock, pause))
    thread.start()
    readings: list[OpenFrame] = []
    for _ in range(3):
        here.acquire()
        frames = state.frames(state.threads({thread.native_id})[thread.native_id or 0])
        readings += [frame for frame in frames if frame.name == "nested"]
        there.release()
    thread.join()
    in_try, in_finally, behind = readings
    assert {frame.first_local for frame in readings} == {id(lock)}
    expected = 3 if state.layout.has_exits_apart else 2
    assert len(in_try.values) == expected, "the end of the block of the lock, and the iterator"
    assert in_finally.values[:1] == in_try.values[:1]
    assert behind.values == ()


def test_threads_are_those_that_are_wanted() -> None:
    state = own_state()
    own = threading.get_native_id()
    assert state.threads({own}).keys() == {own}
    assert state.threads(set()) == {}


def test_another_object_is_no_type() -> None:
    state = own_state()
    assert state.type_name(id(threading.Lock)) in ("_thread.lock", "")
    assert state.type_name(id(type(threading.Lock()))) == "_thread.lock"
    assert state.type_name(id(ExitStack)) == "ExitStack"  # its own type is ABCMeta
    assert state.type_name(id(state)) == ""
    assert state.type_name(0) == ""
