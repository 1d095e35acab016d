"""Lock stressors of stress-ng: each forks, runs for some seconds and checks itself."""

from __future__ import annotations

import os

import psutil
import pytest
from support import watched
from support.watched import Child, Need

SECONDS = 5
POWERLESS = ["--bounding-set=-all", "--inh-caps=-all"]


def without_rights(need: Need) -> list[str]:
    """Return a command prefix; as root the stressors would ask for a real-time scheduler."""
    return [str(need("setpriv", "util-linux")), *POWERLESS] if os.geteuid() == 0 else []


def stressor(depth: int) -> Child:
    """Return a function that finds the descendant ``depth`` generations below the first process."""

    def find(pid: int) -> int | None:
        try:
            generation = [psutil.Process(pid)]
            for _ in range(depth):
                generation = [child for one in generation for child in one.children()]
            named = (one.pid for one in generation if one.name().startswith("stress-ng-"))
            return next(named, None)
        except psutil.Error:
            return None

    return find


@pytest.mark.parametrize(
    ("name", "kind", "depth"),
    [
        ("mutex", "mutex", 1),
        ("futex", "futex", 2),  # the stressor only wakes threads; its child waits
        pytest.param("sem", "sem", 1, marks=pytest.mark.big),
        pytest.param("pthread", "join", 1, marks=pytest.mark.big),
    ],
)
def test_a_stressor(name: str, kind: str, depth: int, need: Need) -> None:
    command = [*without_rights(need), str(need("stress-ng")), f"--{name}", "1"]
    command += ["--verify", "--timeout", str(SECONDS)]
    seen = watched.run(command, "contended", stressor(depth))
    assert seen.status == 0, seen.output
    assert "successful run completed" in seen.output
    assert watched.total(seen.last, "acquisitions", kind) > 0
