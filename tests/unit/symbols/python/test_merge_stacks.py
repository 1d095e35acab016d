"""Python functions replace the evaluations of a native stack."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders.python_stacks import CALL, EVALUATION, WAIT, native, runs

from locktop.collector.model import (
    Frame,
)
from locktop.collector.symbols.python.merge_stacks import merged, runs_python


def functions(frames: tuple[Frame, ...] | None) -> list[str] | None:
    return None if frames is None else [frame.function for frame in frames]


def test_an_evaluation_becomes_the_functions_that_it_executes() -> None:
    stack = native(*WAIT, EVALUATION, *CALL, "list_sort", EVALUATION, "libc.so.6:start_thread")
    found = merged(stack, runs("wait,get", "work,run"))
    assert functions(found) == ["wait", "get", "list_sort", "work", "run", "start_thread"]
    assert found is not None
    assert [frame.module for frame in found[:3]] == ["python", "python", "libpython3.so"]
    assert (found[0].file, found[0].line, found[0].address) == ("app.py", 1, 3)


def test_other_waits_of_the_interpreter_stay() -> None:
    stack = native("take_gil", "PyEval_RestoreThread", EVALUATION, "pymain_main", "python3:main")
    assert functions(merged(stack, runs("loop"))) == ["take_gil", "loop", "main"]


def test_modules_that_are_not_the_interpreter_stay_whole() -> None:
    stack = native("libc.so.6:poll", "_ssl.so:", "_ssl.so:_PySSL_read", *CALL, EVALUATION)
    assert functions(merged(stack, runs("read"))) == ["poll", "", "_PySSL_read", "read"]


def test_an_interpreter_without_its_own_symbols() -> None:
    stack = native("PyThread_acquire_lock_timed", "", "", EVALUATION, "", EVALUATION, "")
    assert functions(merged(stack, runs("inner", "outer"))) == ["inner", "outer"]


def test_functions_inlined_into_the_evaluation_are_replaced() -> None:
    list_append, evaluation = native("list_append", EVALUATION)
    inlined = replace(list_append, address=evaluation.address, inlined=True)
    sort, outer = native("list_sort", EVALUATION)
    stack = (inlined, evaluation, replace(sort, inlined=True), outer)
    assert functions(merged(stack, runs("a", "b"))) == ["a", "list_sort", "b"]


def test_a_separated_part_is_the_same_function() -> None:
    assert functions(merged(native(EVALUATION + ".cold"), runs("a"))) == ["a"]


@pytest.mark.parametrize("read", [(), ("a",), ("a", "b", "c")])
def test_stacks_that_do_not_belong_together_are_not_merged(read: tuple[str, ...]) -> None:
    assert merged(native(EVALUATION, EVALUATION), runs(*read)) is None
    assert merged(native("libc.so.6:main"), runs(*read)) is None


def test_a_stack_that_was_cut_off_goes_on_in_python() -> None:
    stack = native(EVALUATION, "libc.so.6:qsort", EVALUATION)
    found = merged(stack, runs("a", "b,c", "d", "e"), whole=False)
    assert functions(found) == ["a", "qsort", "b", "c", "d", "e"]
    assert merged(stack, runs("a"), whole=False) is None


def test_only_evaluation_is_python() -> None:
    assert runs_python(native("x", EVALUATION))
    assert not runs_python(native("_PyEval_EvalFrameDefaults", "PyEval_EvalCode", ""))
