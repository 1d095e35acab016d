"""A bounded worker process: answers, limits, its end and its next start."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from locktop.collector.symbols.bounded_worker import BoundedWorker, WorkerError

PATIENCE_S = 60.0
MAX_ANSWER = 1 << 20
MAX_MEMORY = 256 << 20

WORKER = f"""\
import os, time
from locktop.collector.symbols.bounded_worker import serve
def answer(request):
    what, _, size = request.partition(b" ")
    if what == b"sleep":
        time.sleep(float(size))
    if what == b"until":
        while not os.path.exists(size):
            time.sleep(0.01)
    if what == b"spin":
        while True:
            pass
    if what == b"memory":
        try:
            bytearray(int(size))
        except MemoryError:
            return b"refused"
    return b"x" * int(size) if what == b"answer" else request
serve(answer, max_memory={MAX_MEMORY}, max_cpu_s=1)
"""


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BoundedWorker]:
    (tmp_path / "some_worker.py").write_text(WORKER)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    made = BoundedWorker("some_worker", max_answer=MAX_ANSWER, max_starts=3)
    yield made
    made.close()


def test_each_message_has_its_answer(worker: BoundedWorker) -> None:
    assert worker.pid is None
    for request in (b"", b"one", b"two\n", bytes(range(256)) * 500):
        assert worker.call(request, PATIENCE_S) == request
    first = worker.pid
    assert worker.call(b"answer %d" % MAX_ANSWER, PATIENCE_S) == b"x" * MAX_ANSWER
    assert worker.pid == first


def test_an_answer_may_come_later(worker: BoundedWorker, tmp_path: Path) -> None:
    message = b"until %s/go" % os.fsencode(tmp_path)
    worker.send(message)
    assert worker.receive(0.0) is None
    (tmp_path / "go").touch()
    assert worker.receive(PATIENCE_S) == message


def test_memory_is_bounded(worker: BoundedWorker) -> None:
    assert worker.call(b"memory %d" % (2 * MAX_MEMORY), PATIENCE_S) == b"refused"


@pytest.mark.parametrize("message", [b"spin", b"answer %d" % (MAX_ANSWER + 1)])
def test_too_much_cpu_time_or_a_too_long_answer_ends_the_worker(
    worker: BoundedWorker, message: bytes
) -> None:
    with pytest.raises(WorkerError, match="ended, or its answer is too long"):
        worker.call(message, PATIENCE_S)
    assert worker.pid is None
    assert worker.call(b"again", PATIENCE_S) == b"again"


def test_no_answer_in_time_ends_the_worker(worker: BoundedWorker) -> None:
    began = time.monotonic()
    with pytest.raises(WorkerError, match="no answer in time"):
        worker.call(b"sleep 600", 0.2)
    assert time.monotonic() - began < PATIENCE_S
    assert worker.pid is None


def test_a_worker_that_ends_too_often_is_started_no_more(worker: BoundedWorker) -> None:
    for _ in range(3):
        assert worker.call(b"sound", PATIENCE_S) == b"sound"
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        with pytest.raises(WorkerError):
            worker.call(b"sound", PATIENCE_S)
    with pytest.raises(WorkerError, match="too often"):
        worker.send(b"sound")


def test_a_module_that_cannot_be_run_is_an_error() -> None:
    with pytest.raises(WorkerError):
        BoundedWorker("no_such_module_at_all", max_answer=1).call(b"", PATIENCE_S)
