"""A stranger's small file or few datagrams: the real commands take little memory for them."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path

import msgpack
from fuzz import hostile_recordings as hostile
from support import tool
from unit.builders import scenarios

from locktop.collector.extensions.stream import datagrams
from locktop.collector.recording.frame_format import FrameType

#: The command itself takes 60 to 100 MB.
MAX_KB = 400 << 10
#: So many origins of a lock's blame are 60 MB that are packed into some kilobytes.
_ORIGINS = 20_000_000


def _crowded_payload() -> bytes:
    """A snapshot with one lock, whose blame announces millions of origins."""
    marker = b"\x93\x92\x00\x00\x92\x00\x00\x92\x00\x00"  # three origins
    tree = msgpack.unpackb(hostile.payload_of(scenarios.normal), strict_map_key=False)
    tree[1][1] = hostile.crowded_blame(3)
    payload = hostile.msgpacked(tree)
    assert payload.count(marker) == 1
    many = b"\xdd" + _ORIGINS.to_bytes(4, "big") + b"\x92\x00\x00" * _ORIGINS
    return payload.replace(marker, many)


#: Runs a command, and prints the most kilobytes that the command had. The kernel also counts the
#: memory of the process that starts a command. The process of the tests is large.
_MEASURED = (
    sys.executable,
    "-c",
    "import resource, subprocess, sys\n"
    "status = subprocess.call(sys.argv[1:])\n"
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
    "sys.exit(status)",
)


def _ended(process: subprocess.Popen[str]) -> tuple[str, int]:
    """Wait for the end of a measured command; return its errors and its most kilobytes."""
    output, errors = process.communicate(timeout=tool.PATIENCE_S)
    return errors, int(output.splitlines()[-1])


def test_a_small_recording_takes_little_memory(tmp_path: Path) -> None:
    file = tmp_path / "r"
    file.write_bytes(hostile.recording_of(_crowded_payload()))
    assert file.stat().st_size < 30_000
    process = tool.start("check", str(file), prefix=_MEASURED)
    errors, max_kb = _ended(process)
    assert process.returncode == 2
    assert errors.startswith("locktop: ")
    assert errors.count("\n") == 1
    assert max_kb < MAX_KB


def test_a_few_datagrams_take_little_memory() -> None:
    hostile_frame = hostile.packed(FrameType.KEY, _crowded_payload())
    sound_frame = hostile.packed(FrameType.KEY, hostile.payload_of(scenarios.normal))
    assert len(hostile_frame) < 30_000
    process = tool.start("listen", "--once", "udp://127.0.0.1:0", prefix=_MEASURED)
    assert process.stderr is not None
    try:
        port = 0
        while not port:
            found = re.search(r"listening at udp://127\.0\.0\.1:(\d+)", process.stderr.readline())
            port = int(found[1]) if found else 0
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
            peer.connect(("127.0.0.1", port))
            sent = 0
            for number, frame in enumerate((hostile_frame, sound_frame)):
                for datagram in datagrams.split(frame, 7, number, sent, datagrams.DEFAULT_SIZE):
                    peer.send(datagram)
                    sent += 1
            # The sound snapshot ends the command.
            _, max_kb = _ended(process)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0
    assert max_kb < MAX_KB
