"""One run: start a healthy program, scan it at random moments, and end it."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from support.targets import PATIENCE_S, remove_file_of, start_time

from false_alarms.programs import MISUSE, POSSIBLE, POTENTIAL, Healthy
from locktop.collector.errors import LocktopError
from locktop.collector.model import Confidence, Snapshot
from locktop.collector.render.documents.snapshot_codec import document
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source
from locktop.collector.sources.launch import preload_environment
from locktop.tui import cli

_SCANS = 5
#: A run without the library: the sampling source scans the program.
UNPREPARED = "unprepared"
#: The default level occurs more often.
_LEVELS = ("contended", "contended", "contended", "blocks", "all", UNPREPARED, UNPREPARED)
#: "mark" finds more potential deadlocks (docs/potential.md).
_ORDERS = ("1", "mark")


@dataclass(frozen=True)
class Result:
    """The result of a run."""

    name: str
    seed: str  # repeats all random choices of the run
    scans: int
    false_findings: tuple[str, ...]


def run(program: Healthy, seed: str, directory: Path, level: str = "") -> Result:
    """Run ``program`` at ``level``, or at a random level.

    Snapshots with a false alarm are kept in ``directory``.
    """
    chance = random.Random(seed)
    program = program.ready()
    scans, false_findings = 0, list[str]()
    level = level or chance.choice(_LEVELS)
    variables = preload_environment(level) if level != UNPREPARED else {}
    variables["LOCKTOP_ORDER"] = chance.choice(_ORDERS)
    with _started(program.command, variables) as process, _load(program.load):
        source = _attached(process, only_exact=level != UNPREPARED)
        if source is None:
            return Result(program.name, seed, 0, ("no scan was possible",))
        try:
            for snapshot in _snapshots(source, chance, program.lives_s):
                scans += 1
                found = _false_findings(snapshot, program.doubtful)
                if found:
                    _keep(snapshot, directory / f"{program.name}-{seed}-{scans}.json")
                false_findings += found
        finally:
            source.close()
        false_findings += _check(process)
        if program.ends_with_ok:
            false_findings += _ended_well(process)
    return Result(program.name, seed, scans, tuple(dict.fromkeys(false_findings)))


def _false_findings(snapshot: Snapshot, doubtful: frozenset[str]) -> list[str]:
    """Return the findings of a snapshot that are not in ``doubtful``."""
    found = []
    for deadlock in snapshot.deadlocks:
        if deadlock.certain:
            found.append("certain deadlock")
        elif POSSIBLE not in doubtful:
            found.append(f"possible deadlock: {deadlock.doubt}")
    for cycle in snapshot.lock_order:
        if cycle.confidence is not Confidence.LOW and POTENTIAL not in doubtful:
            found.append(f"potential deadlock: {cycle.confidence} {cycle.why}")
    if MISUSE not in doubtful:
        found += [f"misuse: {misuse.kind}" for misuse in snapshot.misuses]
    return found


def _snapshots(source: Source, chance: random.Random, lives_s: float) -> Iterator[Snapshot]:
    """Scan at random moments, now and then twice in a row; the last snapshot has all names."""
    for _ in range(_SCANS - 1):
        time.sleep(chance.choice((0.0, chance.expovariate((_SCANS - 2) / lives_s))))
        snapshot = source.scan()
        yield snapshot
        if snapshot.ended:
            return
    yield source.scan(resolve=True)


def _check(process: subprocess.Popen[bytes]) -> list[str]:
    """Run ``locktop check``, whose exit status is 0 for a program that lives."""
    with redirect_stderr(StringIO()):  # an error message if the program has ended
        status = cli.main(["check", "-q", "--certain-only", "-p", str(process.pid)])
    return [f"exit status {status} of check"] if status and process.poll() is None else []


def _ended_well(process: subprocess.Popen[bytes]) -> list[str]:
    said, _ = process.communicate(timeout=PATIENCE_S)
    return (
        [] if said.endswith(b"ok\n") and process.returncode == 0 else [f"the program said {said!r}"]
    )


def _keep(snapshot: Snapshot, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_name(path.name.replace(" ", "-")).write_text(json.dumps(document(snapshot), indent=1))


# ---- processes ----


@contextmanager
def _started(
    command: tuple[str, ...], variables: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        command,
        env={**os.environ, **variables},
        preexec_fn=_step_back,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    started = start_time(process.pid)
    try:
        yield process
    finally:
        _end(process)
        remove_file_of(process.pid, started)


@contextmanager
def _load(command: tuple[str, ...]) -> Iterator[None]:
    if not command:
        yield
        return
    process = subprocess.Popen(
        command,
        preexec_fn=_step_back,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        _end(process)


def _step_back() -> None:
    """Lower the priority, so that hundreds of threads leave time for the scans."""
    os.nice(8)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all its children.

    Its process group has its pid, which no other process gets before the wait below.
    """
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()


def _attached(process: subprocess.Popen[bytes], only_exact: bool) -> Source | None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with suppress(LocktopError):  # the process has just started
            return attach(process.pid, only_exact=only_exact)
        if process.poll() is not None:
            return None
        time.sleep(0.005)
    return None
