"""uftrace counts the same calls of each function as the library."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from support import tool, uftrace
from support.call_trees import INSTRUMENTED
from support.targets import StartTarget

Need = Callable[..., Path]
#: The program says its counts so many times, and goes on at a line in between.
ROUNDS = 2


def test_each_function_has_the_count_of_uftrace(
    start_target: StartTarget, need: Need, tmp_path: Path
) -> None:
    target = start_target("call_times", flags=INSTRUMENTED)
    for _ in range(ROUNDS - 1):
        target.truth()
        target.go_on()
    truth = target.truth()
    done = tool.run("calls", "-p", target.pid, "--flat", "--format", "json")
    ours = {one["function"]: one["count"] for one in json.loads(done.stdout)["functions"]}
    program = Path(f"/proc/{target.pid}/exe").readlink()
    theirs = uftrace.counts(need("uftrace"), [program], tmp_path / "trace", "\n" * (ROUNDS - 1))
    # The program exits in there at the end of its input, and uftrace leaves that call out.
    ours.pop("hear")
    assert ours == {name: count for name, count in theirs.items() if name != "hear"}
    assert [ours[name] for name in ("most", "some", "little")] == truth["counts"]
