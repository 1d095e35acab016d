"""Python functions replace the evaluations of a native stack."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders.python_stacks import CALL, EVALUATION, WAIT, native, runs

from locktop.collector.model import Frame
from locktop.collector.model.frames import PYTHON_NOT_READ
from locktop.collector.symbols.python.merge_stacks import merge, replace_unread, runs_python


def functions(frames: tuple[Frame, ...] | None) -> list[str] | None:
    return None if frames is None else [frame.function for frame in frames]


def test_an_evaluation_becomes_the_functions_that_it_executes() -> None:
    stack = native(*WAIT, EVALUATION, *CALL, "list_sort", EVALUATION, "libc.so.6:start_thread")
    found = merge(stack, runs("wait,get", "work,run"))
    assert functions(found) == ["wait", "get", "list_sort", "work", "run", "start_thread"]
    assert found is not None
    assert [frame.module for frame in found[:3]] == ["python", "python", "libpython3.so"]
    assert (found[0].file, found[0].line, found[0].address) == ("app.py", 1, 3)


def test_one_line_stands_for_functions_that_nobody_read() -> None:
    stack = native("time_sleep", *CALL, EVALUATION, *CALL, EVALUATION, "libc.so.6:start_thread")
    assert functions(replace_unread(stack)) == [
        "time_sleep",
        PYTHON_NOT_READ.function,
        "start_thread",
    ]
    between = native(EVALUATION, "list_sort", EVALUATION)
    line = PYTHON_NOT_READ.function
    assert functions(replace_unread(between)) == [line, "list_sort", line]


def test_a_stack_without_an_evaluation_stays_as_it_is() -> None:
    for stack in (native("libc.so.6:poll", "libc.so.6:main"), stripped("", "PyThread_start", "")):
        assert replace_unread(stack) == stack


def test_native_waits_of_the_interpreter_stay_in_the_stack() -> None:
    stack = native("take_gil", "PyEval_RestoreThread", EVALUATION, "pymain_main", "python3:main")
    assert functions(merge(stack, runs("loop"))) == ["take_gil", "loop", "main"]


def test_frames_of_other_modules_stay_in_the_stack() -> None:
    stack = native("libc.so.6:poll", "_ssl.so:", "_ssl.so:_PySSL_read", *CALL, EVALUATION)
    assert functions(merge(stack, runs("read"))) == ["poll", "", "_PySSL_read", "read"]


def test_a_stripped_interpreter_is_merged() -> None:
    stack = native("PyThread_acquire_lock_timed", "", "", EVALUATION, "", EVALUATION, "")
    assert functions(merge(stack, runs("inner", "outer"))) == ["inner", "outer"]


def test_functions_inlined_into_the_evaluation_are_replaced() -> None:
    list_append, evaluation = native("list_append", EVALUATION)
    inlined = replace(list_append, address=evaluation.address, inlined=True)
    sort, outer = native("list_sort", EVALUATION)
    stack = (inlined, evaluation, replace(sort, inlined=True), outer)
    assert functions(merge(stack, runs("a", "b"))) == ["a", "list_sort", "b"]


def test_a_cold_part_counts_as_its_function() -> None:
    assert functions(merge(native(EVALUATION + ".cold"), runs("a"))) == ["a"]


@pytest.mark.parametrize("read", [(), ("a",), ("a", "b", "c")])
def test_stacks_of_different_depths_are_not_merged(read: tuple[str, ...]) -> None:
    assert merge(native(EVALUATION, EVALUATION), runs(*read)) is None
    assert merge(native("libc.so.6:main"), runs(*read)) is None


def test_a_truncated_native_stack_continues_in_python() -> None:
    stack = native(EVALUATION, "libc.so.6:qsort", EVALUATION)
    found = merge(stack, runs("a", "b,c", "d", "e"), whole=False)
    assert functions(found) == ["a", "qsort", "b", "c", "d", "e"]
    assert merge(stack, runs("a"), whole=False) is None


def test_an_interpreter_is_known_by_its_function_or_its_file() -> None:
    assert runs_python(native("x", "server:" + EVALUATION))
    assert runs_python(native("libc.so.6:read", "python3.14:", "python3.14:PyEval_EvalCode"))
    assert not runs_python(native("server:_PyEval_EvalFrameDefaults", "python-config:main"))
    stack = native("PyThread_acquire_lock_timed", EVALUATION)
    assert not runs_python(merge(stack, runs("a")) or ())


def stripped(*names: str) -> tuple[Frame, ...]:
    """A stack of an interpreter whose evaluation has no name: "" is one of its functions."""
    return native(*(name if ":" in name else f"python3.14:{name}" for name in names))


def test_a_nameless_evaluation_is_replaced_with_the_whole_interpreter() -> None:
    stack = stripped("_PySemaphore_Wait", "", "PyEval_EvalCode", "", "libc.so.6:start_thread")
    assert functions(merge(stack, runs("a,b", "c"))) == ["a", "b", "c", "start_thread"]
    assert functions(merge(stack, runs("a"), whole=False)) == ["a", "start_thread"]


def test_a_stack_is_not_merged_by_module_before_the_names_are_read() -> None:
    stack = stripped("", "_queue.so:", "", "libc.so.6:start_thread")
    assert merge(stack, runs("get", "run", "begin"), names_are_read=False) is None
    assert merge(native(EVALUATION), runs("a"), names_are_read=False) is not None


def test_a_module_that_takes_a_lock_is_called_by_the_python_function() -> None:
    waits = ["_PySemaphore_Wait", "", "_PyParkingLot_Park", "_queue.so:", "_queue.so:"]
    stack = stripped(*waits, "", "PyEval_EvalCode", "libc.so.6:start_thread")
    assert functions(merge(stack, runs("get", "run"))) == ["", "", "get", "run", "start_thread"]


def test_a_module_that_calls_back_stands_between_python_functions() -> None:
    stack = stripped("libc.so.6:poll", "", "PyObject_Call", "_json.so:scan", "", "libc.so.6:main")
    assert functions(merge(stack, runs("a", "b"))) == ["poll", "a", "scan", "b", "main"]


def test_a_module_at_an_unknown_depth_is_left_out() -> None:
    stack = stripped("libc.so.6:poll", "", "PyObject_Call", "_json.so:scan", "", "libc.so.6:main")
    assert functions(merge(stack, runs("a", "b", "c"))) == ["poll", "a", "b", "c", "main"]


def test_instructions_of_tail_calls_stand_for_their_evaluation() -> None:
    stack = native("_TAIL_CALL_CALL.lto_priv.0", EVALUATION, *CALL, "list_sort", "_TAIL_CALL_X")
    assert functions(merge(stack, runs("a", "b"))) == ["a", "list_sort", "b"]
