"""A program that runs to its end under its own load, unprepared or with the library.

With the library, scans go on until the program has ended.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from locktop.collector.errors import LocktopError
from locktop.collector.render.documents.snapshot_codec import document
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source
from locktop.collector.sources.launch import preload_environment
from support.targets import PATIENCE_S

Need = Callable[..., Path]
#: Gets the pid of the program; returns that of the descendant to scan, None until it exists.
Child = Callable[[int], int | None]

_LONGEST_S = 300.0
_BETWEEN_SCANS_S = 0.2
_PIPE = 4096


@dataclass(frozen=True)
class Result:
    """The result of a run."""

    status: int
    output: str
    scans: tuple[dict[str, Any], ...] = ()

    @property
    def last(self) -> dict[str, Any]:
        """The document after the program's end, with the final figures."""
        return self.scans[-1]


def run(
    command: Sequence[str | Path], level: str | None = None, child: Child | None = None
) -> Result:
    """Run ``command``; with a level, run it with the library and scan it until after its end.

    Even a fast program does not end before the first scan. Its output pipe is full, so its first
    output waits.
    """
    read_end, write_end = _full_pipe()
    process = subprocess.Popen(
        [str(part) for part in command],
        env={**os.environ, **(preload_environment(level) if level else {})},
        stdin=subprocess.DEVNULL,
        stdout=write_end,
        stderr=write_end,
    )
    os.close(write_end)
    try:
        source = _attached(process) if level and not child else None
        with ThreadPoolExecutor(1) as pool:
            said = pool.submit(_read_all, read_end)
            source = _attached(process, child) if child and level else source
            scans = tuple(_documents(source)) if source else ()
            status = process.wait(_LONGEST_S)
            return Result(status, said.result()[_PIPE:].decode(errors="replace"), scans)
    finally:
        process.kill()
        process.wait()
        os.close(read_end)


def _read_all(descriptor: int) -> bytes:
    pieces = []
    while piece := os.read(descriptor, 1 << 16):
        pieces.append(piece)
    return b"".join(pieces)


def _full_pipe() -> tuple[int, int]:
    read_end, write_end = os.pipe()
    assert fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, _PIPE) == _PIPE
    os.write(write_end, bytes(_PIPE))
    return read_end, write_end


def _documents(source: Source) -> Iterator[dict[str, Any]]:
    deadline, ended = time.monotonic() + _LONGEST_S, False
    try:
        while not ended:
            assert time.monotonic() < deadline, "the program does not end"
            snapshot = source.scan()
            yield checked(document(snapshot))
            ended = snapshot.ended
            time.sleep(_BETWEEN_SCANS_S)
        yield checked(document(source.scan(resolve=True)))
    finally:
        source.close()


def _attached(process: subprocess.Popen[bytes], child: Child | None = None) -> Source:
    """Attach as soon as the library has started."""
    deadline, why = time.monotonic() + PATIENCE_S, "no such child"
    while process.poll() is None and time.monotonic() < deadline:
        try:
            pid = child(process.pid) if child else process.pid
            if pid is not None:
                return attach(pid, only_exact=True)
        except (
            LocktopError
        ) as error:  # the process has just started, or just executed another program
            why = str(error)
        time.sleep(0.01)
    raise AssertionError(f"no scan was possible: {why}")


def checked(document: dict[str, Any]) -> dict[str, Any]:
    """Check that a document is valid JSON and does not contradict itself, and return it."""
    document = json.loads(json.dumps(document, allow_nan=False))
    threads = {thread["tid"] for thread in document["threads"]}
    locks = {lock["id"] for lock in document["locks"]}
    for lock in document["locks"]:
        assert set(lock["waiters"]) <= threads, lock
        assert len(lock["holders"]) <= 1 or lock["kind"] != "mutex", lock
        if document["ended"]:  # nothing changes any more
            assert 0 <= lock["contended"] <= lock["acquisitions"], lock
            assert 0 <= lock["wait_max_s"] <= lock["wait_s"] * 1.001, lock
    for thread in document["threads"]:
        assert not thread["waiting_for"] or thread["waiting_for"]["lock"] in locks, thread
    assert not any(circle["certain"] for circle in document["deadlocks"]), (
        "the program continues all the same"
    )
    return document


def total(document: dict[str, Any], figure: str, kind: str) -> float:
    """Return a figure summed over the locks of a kind."""
    return float(sum(lock[figure] for lock in document["locks"] if lock["kind"] == kind))


def threads_seen(result: Result) -> int:
    """Return the number of different threads in all scans."""
    return len({thread["tid"] for scan in result.scans for thread in scan["threads"]})
