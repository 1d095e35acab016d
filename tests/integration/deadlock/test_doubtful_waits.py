"""Long waits for locks without a known holder: each check cannot tell, and none finds nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from support import tool
from support.eventually import until
from support.targets import Compiler, Target

from locktop.collector.sources.launch import preload_environment

Need = Callable[..., object]

CANNOT_TELL = 3
#: After the first one that cannot tell.
CHECKS = 1


def _status(pid: int) -> int:
    return tool.run("check", "-p", pid).returncode


def _is_doubtful(pid: int) -> bool:
    return _status(pid) == CANNOT_TELL


@pytest.mark.parametrize("is_prepared", [True, False], ids=["prepared", "unprepared"])
@pytest.mark.parametrize(
    ("name", "argument", "flags"),
    [("rust_locks_cross", "std", ()), ("openmp_team_waits", "lock", ("-fopenmp",))],
    ids=["rust", "openmp"],
)
def test_each_check_says_that_it_cannot_tell(
    name: str,
    argument: str,
    flags: tuple[str, ...],
    is_prepared: bool,
    compiler: Compiler,
    need: Need,
) -> None:
    """The answer once was "no deadlock" at random: a scan had read no stack in time."""
    if name.startswith("rust"):
        need("rustc")
    environment = preload_environment(None) if is_prepared else {}
    environment |= {"OMP_WAIT_POLICY": "passive"}
    with Target([compiler.program(name, *flags), argument], environment) as target:
        target.truth()
        # The threads may only be about to wait.
        until(partial(_is_doubtful, target.pid), "a long wait")
        assert [_status(target.pid) for _ in range(CHECKS)] == [CANNOT_TELL] * CHECKS
