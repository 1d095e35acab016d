"""`locktop whatif` on a program that starts threads again and again, and joins them."""

from __future__ import annotations

import json
import time
from pathlib import Path

import psutil
import pytest
from support import tool
from support.recordings import end_of, recording
from support.targets import StartTarget
from support.whatif import answer, ratio_of_rounds, ratio_of_rounds_by_cpu_time


@pytest.mark.parametrize("work", ["sleep", "compute", "both"])
def test_a_change_is_predicted_through_starts_and_joins(
    start_target: StartTarget, work: str
) -> None:
    target = start_target("starts_and_joins", "4", "1000", work)
    target.expect("ready")
    # The changed program starts later: it would take the CPUs, of which the replay knows nothing.
    document = answer("-p", target.pid, "-d", "2", "--hold", "mutex=0.5x")
    other = start_target("starts_and_joins", "4", "500", work)
    other.expect("ready")
    ratio = ratio_of_rounds if work == "sleep" else ratio_of_rounds_by_cpu_time
    truth = ratio(other, target)
    [found] = document["predictions"]
    assert truth / 1.5 < found["ratio"] < truth * 1.5


def test_a_recording_knows_the_cpu_time_of_the_threads_that_ended(
    start_target: StartTarget, tmp_path: Path
) -> None:
    target = start_target("starts_and_joins", "2", "1000", "compute", level="all")
    target.expect("ready")
    path = tmp_path / "recording"
    before_s, before = time.monotonic(), sum(psutil.Process(target.pid).cpu_times()[:2])
    with recording(target.pid, path, "-d", "3", "--every", "100ms") as recorder:
        end_of(recorder)
    used_s = sum(psutil.Process(target.pid).cpu_times()[:2]) - before
    truth = used_s / (time.monotonic() - before_s)
    done = tool.run("whatif", str(path), "--cpus", "4", "--format", "json")
    assert done.returncode in (0, 3), done.stderr
    # No thread lasts: the two that do only wait. The truth has the time around the span, too, which
    # differs on a busy host.
    assert truth / 3 < json.loads(done.stdout)["cpus_used"] < truth * 3
