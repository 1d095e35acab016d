"""ffmpeg with libx264: pools of threads encode frames, and the result is the same."""

from __future__ import annotations

import pytest
from support import watched
from support.watched import Need

pytestmark = pytest.mark.big


def checksums(result: watched.Result) -> list[str]:
    return [line for line in result.output.splitlines() if line.startswith("0,")]


def test_the_encoded_frames_are_the_same(need: Need) -> None:
    command = [
        str(need("ffmpeg")),
        "-nostdin",
        "-f",
        "lavfi",
        "-i",
        "testsrc2=size=640x360:rate=25",
    ]
    command += ["-t", "6", "-c:v", "libx264", "-threads", "4", "-preset", "veryfast"]
    command += ["-f", "framemd5", "-"]
    without, seen = watched.run(command), watched.run(command, "contended")
    assert (without.status, seen.status) == (0, 0), seen.output
    assert len(checksums(without)) == 6 * 25
    assert checksums(seen) == checksums(without)
    assert watched.threads_seen(seen) > 4
    assert watched.total(seen.last, "acquisitions", "mutex") > 6 * 25
    assert watched.total(seen.last, "wait_s", "cond") > 0
