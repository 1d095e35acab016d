"""A program with children behaves with the library as without it."""

from __future__ import annotations

import pytest
from support.comparison import CompareWithUnprepared


@pytest.mark.parametrize(
    "how", ["fork", "handlers", "busy", "vfork", "vexec", "spawn", "exec", "noexec"]
)
def test_parent_and_child_have_the_same_results(
    how: str, compare_with_unprepared: CompareWithUnprepared
) -> None:
    compare_with_unprepared("fork_vfork_spawn_exec", how)
