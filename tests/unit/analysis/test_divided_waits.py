"""The division of waits among Python functions."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from unit.builders import records

from locktop.collector.analysis.divided_waits import basis, is_divided, parts
from locktop.collector.model import PythonShare, WaitPart, WaitStack


def waited(*python: PythonShare, count: int = 10, idle: bool = False) -> WaitStack:
    """``count``: the number of waits that ended."""
    return WaitStack(5, count, 8.0, idle, python)


def test_the_parts_add_up_and_what_was_not_read_keeps_the_native_stack() -> None:
    entry = waited(PythonShare(101, 5, 9), PythonShare(5, 2, 2), PythonShare(102, 1, 1))
    assert parts(entry) == (
        WaitPart(101, 5.0, None), WaitPart(5, 2.0, None), WaitPart(102, 1.0, None),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "divided"),
    [
        (waited(), False),
        (waited(PythonShare(101, 19, 9)), False),
        (waited(PythonShare(101, 9, 9), PythonShare(5, 9, 9)), False),
        (waited(PythonShare(101, 8, 8), PythonShare(102, 2, 2), count=99), True),
        (waited(PythonShare(101, 2, 2), PythonShare(102, 1, 1), count=3), True),
        (waited(PythonShare(101, 9, 1), count=0), True),
        (waited(PythonShare(5, 9, 9), count=0), False),
        (waited(PythonShare(101, 0, 99)), False),  # a file of a stranger may say so
    ],
)
def test_ended_waits_are_divided_only_if_enough_of_them_were_read(
    entry: WaitStack, divided: bool
) -> None:
    assert is_divided(entry) is divided
    assert (len(parts(entry)) > 1 or parts(entry)[0].count is None) is divided
    if not divided:
        assert parts(entry) == (WaitPart(5, 8.0, entry.count),)


def test_the_basis_is_the_number_of_waits_that_were_read_in_contention() -> None:
    read = PythonShare(101, 19, 14), PythonShare(5, 3, 3)
    stacks = waited(*read), waited(*read, idle=True), waited(PythonShare(101, 1, 1))
    lock = replace(records.lock(1, "g_lock"), wait_stacks=stacks)
    assert basis((lock, lock)) == 28
