"""Children, however they are made, and their parents live on as without the library."""

from __future__ import annotations

import pytest
from support.comparison import CompareWithUnprepared


@pytest.mark.parametrize(
    "how", ["fork", "handlers", "busy", "vfork", "vexec", "spawn", "exec", "noexec"]
)
def test_children_made_by(how: str, compare_with_unprepared: CompareWithUnprepared) -> None:
    compare_with_unprepared("fork_vfork_spawn_exec", how)
