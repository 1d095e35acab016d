"""pbzip2: blocks of a file pass from thread to thread in queues of mutexes and conditions."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

from support import watched
from support.watched import Need

THREADS = 4


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_compressed_file_is_the_same(need: Need, tmp_path: Path) -> None:
    original, compressed = tmp_path / "data", tmp_path / "data.bz2"
    original.write_bytes(random.Random(1).randbytes(1 << 20) * 2)
    pack = [str(need("pbzip2")), "-v", "-k", "-f", f"-p{THREADS}", "-b2", str(original)]
    unpack = [str(need("pbzip2")), "-d", "-v", "-k", "-f", f"-p{THREADS}", str(compressed)]
    digests = []
    for level in (None, "contended"):
        packed = watched.run(pack, level)
        digests.append(digest(compressed))
        original.unlink()
        unpacked = watched.run(unpack, level)
        digests.append(digest(original))
        assert (packed.status, unpacked.status) == (0, 0), packed.output + unpacked.output
    assert digests[:2] == digests[2:]
    for seen in (packed, unpacked):
        assert watched.threads_seen(seen) >= THREADS
        assert watched.total(seen.last, "acquisitions", "mutex") > 0
        assert watched.total(seen.last, "wait_s", "cond") > 0, "threads wait for the queues"
