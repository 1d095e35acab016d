"""A signal during the wait for names ends `locktop watch` soon, with all that it knows."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.targets import PATIENCE_S, StartTarget

from locktop.collector.analysis.alerts import AlertKind, Alerts
from locktop.collector.analysis.rate_limit import RateLimit
from locktop.collector.extensions.watch.alert_command import AlertCommand
from locktop.collector.extensions.watch.alert_snapshots import AlertSnapshots
from locktop.collector.extensions.watch.watcher import Watcher
from locktop.collector.sources import pipeline
from locktop.collector.sources.attach import attach
from locktop.collector.symbols.dwarf.unit_index import SourceLocation
from locktop.collector.symbols.modules import Module
from locktop.collector.symbols.resolver import Resolver

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@pytest.fixture
def handlers() -> Iterator[None]:
    """Restores the signal handlers of this process."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def slow_names(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Keeps the resolver from finding any name; the event is set at its first query."""
    queried, over = threading.Event(), threading.Event()

    def never(module: Module, address: int) -> tuple[SourceLocation, ...]:
        queried.set()
        over.wait()
        return ()

    monkeypatch.setattr(Module, "stored_locations", never)
    monkeypatch.setattr(pipeline, "NAMES_S", 1e6)
    yield queried
    over.set()


def test_a_signal_ends_the_wait_for_names_and_the_snapshot_is_whole(
    start_target: StartTarget,
    tmp_path: Path,
    handlers: None,
    slow_names: threading.Event,
    capsys: pytest.CaptureFixture[str],
) -> None:
    target = start_target("ring_of_three")
    target.expect("ready")
    target.go_on()
    target.truth()
    source = attach(target.pid)
    watching = Watcher(
        source,
        Alerts(None),
        {AlertKind.DEADLOCK: AlertCommand(f"touch {tmp_path}/started", PATIENCE_S)},
        {kind: RateLimit(1000, 1.0) for kind in AlertKind},
        AlertSnapshots(tmp_path, 9),
    )
    waits, real_wait = threading.Event(), Resolver.wait

    def wait(self: Resolver, timeout_s: float = 30.0) -> bool:
        waits.set()
        return real_wait(self, timeout_s)

    def end_it() -> None:
        if slow_names.wait(PATIENCE_S) and waits.wait(PATIENCE_S):
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Resolver, "wait", wait)
        sender = threading.Thread(target=end_it, daemon=True)
        sender.start()
        try:
            watching.run(0.02)  # returns only because of the signal
        finally:
            source.close()
        sender.join()
    (line,) = capsys.readouterr().out.splitlines()
    assert f"deadlock: 3 threads of ring_of_three {target.pid} wait for each other" in line
    (saved,) = tmp_path.iterdir()
    assert str(saved) in line, "the only file is the snapshot: no command was started"
    (deadlock,) = json.loads(saved.read_text())["deadlocks"]
    assert len(deadlock["cycle"]) == 3
    assert target.process.poll() is None
