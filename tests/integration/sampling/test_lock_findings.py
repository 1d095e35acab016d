"""The details of a lock of a process without the library begin with a finding and its advice."""

from __future__ import annotations

import re
import time
from contextlib import closing
from pathlib import Path

import pytest
from support import requirements, tool
from support.eventually import until
from support.pythons import PYTHON, has_mutexes
from support.targets import TARGETS, Compiler, StartTarget, Target

from locktop.collector.model import Lock, Pattern, PatternName, Snapshot
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.sources.attach import attach
from locktop.collector.sources.base import Source
from locktop.tui.views.class_details import class_details
from locktop.tui.views.headline import headline
from locktop.tui.views.lock_details import lock_details
from locktop.tui.views.styled_line import Line, line_text, unfolded

#: Seconds of waits after which each of them would be a finding, if it were for a lock.
LONG_S = 2.0
#: Seconds of samples that are enough for a pattern.
PATTERN_S = 10.0
PACE_S = 0.2


def texts_of(snapshot: Snapshot) -> list[str]:
    """Return the details of each lock and of each class of locks."""
    index = SnapshotIndex(snapshot)
    details = [lock_details(index, lock) for lock in index.locks.values()]
    details += [class_details(index, lock_class) for lock_class in index.classes.values()]
    return [text_of(tuple(lines)) for lines in details]


def text_of(lines: tuple[Line, ...]) -> str:
    return "\n".join(map(line_text, unfolded(lines)))


@pytest.mark.parametrize(
    ("program", "arguments", "contended"),
    [
        ("pool_waits_for_work", (), set()),
        ("contention_patterns", ("herd",), set()),
        ("six_pools", ("4",), {"g_accept_lock", "g_config_lock"}),
    ],
)
def test_a_pool_without_work_has_no_finding(
    start_unprepared: StartTarget, program: str, arguments: tuple[str, ...], contended: set[str]
) -> None:
    target = start_unprepared(program, *arguments)
    assert target.line()
    with closing(attach(target.pid)) as source:
        until(lambda: paced_scan(source).duration_s >= LONG_S, "waits that are long")
        snapshot = paced_scan(source)
    with_advice = {text.split()[0] for text in texts_of(snapshot) if "\n advice " in text}
    assert with_advice == contended


def paced_scan(source: Source) -> Snapshot:
    """Scan as the screen does: no pattern comes of a shorter interval."""
    time.sleep(PACE_S)
    return source.scan(resolve=True)


def longest_wait_s(snapshot: Snapshot, lock: Lock) -> float:
    waits = [t.waiting_for for t in snapshot.threads if t.tid in lock.waiters]
    return max([wait.duration_s for wait in waits if wait is not None], default=0.0)


def test_a_lock_held_in_a_call_says_so(start_unprepared: StartTarget) -> None:
    target = start_unprepared("contention_patterns", "longhold")
    target.expect("ready")
    snapshots: list[Snapshot] = []
    with closing(attach(target.pid)) as source:

        def is_long() -> bool:
            snapshots.append(paced_scan(source))
            locks = [lock for lock in snapshots[-1].locks if lock.name == "g_lock"]
            return any(longest_wait_s(snapshots[-1], lock) >= LONG_S for lock in locks)

        until(is_long, "a long wait")
    (text,) = [text for text in texts_of(snapshots[-1]) if text.startswith(" g_lock")]
    finding, advice = text.split("\n")[1:3]
    assert "holder" in finding
    assert "in read" in finding
    assert advice.startswith(" advice    Make the call that sleeps before the lock is taken")


def findings_of(start: StartTarget, *arguments: str) -> list[Pattern]:
    """Return the patterns of g_lock once enough samples count."""
    target = start("contention_patterns", *arguments)
    target.expect("ready")
    patterns: list[Pattern] = []
    with closing(attach(target.pid)) as source:

        def has_pattern() -> bool:
            snapshot = paced_scan(source)
            patterns[:] = [p for p in snapshot.patterns if p.name is PatternName.CONTENDED]
            return bool(patterns) or snapshot.duration_s >= PATTERN_S

        until(has_pattern, "a pattern, or samples enough")
    return patterns


@pytest.mark.parametrize("scenario", ["convoy", "serialised"])
def test_a_queue_for_a_lock_is_a_finding(start_unprepared: StartTarget, scenario: str) -> None:
    (pattern,) = findings_of(start_unprepared, scenario)
    assert re.match(r"in \d+ of \d+ samples threads waited, up to [3-8] at once", pattern.evidence)
    assert "do less while it is held" in pattern.advice


def test_two_waits_for_one_long_hold_are_no_queue(start_unprepared: StartTarget) -> None:
    assert not findings_of(start_unprepared, "longhold")


def test_the_headline_keeps_the_guarded_type_the_wait_and_the_line(
    start_unprepared: StartTarget,
) -> None:
    requirements.command("rustc")
    target = start_unprepared("rust_journal", "held")
    target.expect("ready")
    lines: list[str] = []
    with closing(attach(target.pid)) as source:

        def is_long() -> bool:
            snapshot = paced_scan(source)
            lines.append(line_text(headline(SnapshotIndex(snapshot), 80)))
            return any(longest_wait_s(snapshot, lock) >= LONG_S for lock in snapshot.locks)

        until(is_long, "a long wait")
    expected = r" \S*Journal>?: 6 wait >\S+; probably held by flusher, in recvfrom at \S+:\d+"
    assert re.fullmatch(expected, lines[-1]), lines[-1]


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        (
            ["rust_journal", "held"],
            r"6 threads wait for Rust Mutex<Journal>, .*; probably held by flusher, which goes on"
            r" to release it in rust_journal::flush rust_journal\.rs:\d+, and has been in .*,"
            r" at rust_journal::flush rust_journal\.rs:\d+",
        ),
        (
            ["orders_service.py"],
            # Each waiter for a PyMutex sleeps at a semaphore of its own.
            (r"Thread-2 \(submi\S* waits" if has_mutexes(PYTHON) else "4 threads wait")
            + r" for Lock in submit_order .*; probably held by Thread-1 \(charg.*,"
            r" which has been in recvfrom.*, at ask_payment_provider orders_service\.py:\d+",
        ),
    ],
    ids=["rust", "python"],
)
def test_check_names_the_probable_holder_and_its_location(
    compiler: Compiler, command: list[str], answer: str
) -> None:
    name, *arguments = command
    if name.endswith(".py"):
        program: list[str | Path] = [PYTHON, TARGETS / "incidents" / name]
    else:
        requirements.command("rustc")
        program = [compiler.program(name)]
    with Target([*program, *arguments]) as target:
        target.expect("ready")
        done = tool.run("check", "-p", target.pid)
    text = " ".join(done.stdout.split())
    assert done.returncode == 3, done.stdout
    assert "a lock whose holder is only probable" in text
    assert re.search(answer, text), done.stdout
    assert "which probably has" in text, "the stack of the holder"
