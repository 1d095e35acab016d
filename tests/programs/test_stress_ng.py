"""stress-ng's stressors of locks: each forks, runs for some seconds and checks itself."""

from __future__ import annotations

import os

import psutil
import pytest
from support import watched
from support.watched import Child, Need

SECONDS = 5
COMM_MAX = 15  # the kernel cuts names
POWERLESS = ["--bounding-set=-all", "--inh-caps=-all"]


def without_rights(need: Need) -> list[str]:
    """As root they would ask for a scheduler that leaves the processors to them alone."""
    return [str(need("setpriv", "util-linux")), *POWERLESS] if os.geteuid() == 0 else []


def stressor(name: str) -> Child:
    """Gives the process that does the work."""

    def find(pid: int) -> int | None:
        try:
            below = psutil.Process(pid).children(recursive=True)
            names = {one.name(): one.pid for one in below}
        except psutil.Error:
            return None
        wanted = f"stress-ng-{name}"[:COMM_MAX]
        return next((names[found] for found in names if found.startswith(wanted)), None)

    return find


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("mutex", "mutex"),
        ("futex", "futex"),
        pytest.param("sem", "sem", marks=pytest.mark.big),
        pytest.param("pthread", "join", marks=pytest.mark.big),
    ],
)
def test_a_stressor(name: str, kind: str, need: Need) -> None:
    command = [*without_rights(need), str(need("stress-ng")), f"--{name}", "1"]
    command += ["--verify", "--timeout", str(SECONDS)]
    seen = watched.run(command, "contended", stressor(name))
    assert seen.status == 0, seen.output
    assert "successful run completed" in seen.output
    assert watched.total(seen.last, "acquisitions", kind) > 0
