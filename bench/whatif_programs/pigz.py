"""pigz: threads that compress blocks, one that reads them, and one that writes them."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import ClassVar

from whatif_programs.base import RealChange, RealProgram, Run, Setting, need, on_cpus, process


class Pigz(RealProgram):
    """pigz of Debian compresses a text without an end."""

    name = "pigz"
    unit = "bytes"
    base: ClassVar[Setting] = {"threads": 4, "cpus": 0}
    changes: ClassVar[Sequence[RealChange]] = (
        RealChange("2 threads", "--threads", "pigz", "2", {"threads": 2}),
        RealChange("1 CPU", "--cpus", "", "1", {"cpus": 1}),
    )

    def prepare(self, cache: Path) -> None:
        self._path = need("pigz", "pigz")
        random = Random(1)
        words = ["".join(random.choices("abcdefgh", k=random.randint(1, 9))) for _ in range(3000)]
        self._text = " ".join(random.choices(words, k=200_000)).encode()

    @contextmanager
    def running(self, setting: Setting, environment: Mapping[str, str]) -> Iterator[Run]:
        command = on_cpus([self._path, "-p", str(setting["threads"]), "-c"], setting["cpus"])
        with process(command, environment, stdin=subprocess.PIPE) as started:
            assert started.stdin is not None
            feeder = threading.Thread(target=self._feed, args=(started.stdin.fileno(),))
            feeder.start()
            try:
                yield Run(started.pid, lambda: _read_bytes(started.pid))
            finally:
                started.kill()
                feeder.join()

    def _feed(self, descriptor: int) -> None:
        with suppress(BrokenPipeError), open(descriptor, "wb", 0, closefd=False) as pipe:
            while True:
                pipe.write(self._text)


def _read_bytes(pid: int) -> float:
    """Return the bytes that a process read."""
    with open(f"/proc/{pid}/io") as file:
        return float(file.readline().split()[1])
