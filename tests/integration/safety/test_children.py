"""Children, however they are made, and their parents live on as without the library."""

from __future__ import annotations

import pytest
from support.same import AsBare


@pytest.mark.parametrize(
    "how", ["fork", "handlers", "busy", "vfork", "vexec", "spawn", "exec", "noexec"]
)
def test_children_made_by(how: str, as_bare: AsBare) -> None:
    as_bare("forks", how)
