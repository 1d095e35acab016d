"""`locktop whatif` on a program with a limit of CPU time: the limit is really set."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.eventually import until
from support.targets import StartTarget
from support.whatif import answer

_TREE = Path("/sys/fs/cgroup")


@pytest.fixture
def half_a_cpu() -> Iterator[Path]:
    """A control group with half a CPU."""
    is_unified = (_TREE / "cgroup.controllers").exists()
    directory = (_TREE if is_unified else _TREE / "cpu") / "locktop_half_a_cpu"
    try:
        directory.mkdir(exist_ok=True)
        if is_unified:
            (directory / "cpu.max").write_text("50000 100000")
        else:
            (directory / "cpu.cfs_period_us").write_text("100000")
            (directory / "cpu.cfs_quota_us").write_text("50000")
    except OSError as error:
        with contextlib.suppress(OSError):
            directory.rmdir()
        pytest.skip(f"no control group can be made here: {error}")
    yield directory
    until(lambda: not (directory / "cgroup.procs").read_text(), "no process in the group")
    directory.rmdir()


def test_a_limit_of_cpu_time_is_simulated(start_target: StartTarget, half_a_cpu: Path) -> None:
    with start_target("lock_rounds", "4:c300,L40,c100,U", flags=("-lm",)) as target:
        target.expect("ready")
        (half_a_cpu / "cgroup.procs").write_text(str(target.pid))
        document = answer(
            *("-p", target.pid, "-d", "2"),
            *("--hold", "mutexes[40]=0.5x", "--split", "mutexes[40]=4"),
        )
    ratios = {one["kind"]: one["ratio"] for one in document["predictions"]}
    # The CPU time of a round is 400 us, and then 350 us. The lock is no limit.
    assert 1.05 < ratios["hold"] < 1.25
    assert 0.9 < ratios["split"] < 1.1
