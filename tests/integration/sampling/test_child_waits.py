"""A process that has nothing to tell names its child whose threads wait."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from support.eventually import until
from support.targets import Compiler, Target

from locktop.collector.linux import procfs
from locktop.collector.model import Snapshot
from locktop.collector.render import check_report
from locktop.collector.render.text.report import render
from locktop.collector.render.words.snapshot_index import SnapshotIndex
from locktop.collector.sources.attach import attach
from locktop.tui.views.headline import headline
from locktop.tui.views.styled_line import line_text


def shell(program: Path) -> list[str | Path]:
    """Return a command: a shell that waits for the program."""
    return ["/bin/sh", "-c", '"$0"; true', program]


def child_of(pid: int) -> int:
    """Return the only child of a process."""
    (child,) = [other for other in procfs.pids() if parent_of(other) == pid]
    return child


def parent_of(pid: int) -> int:
    """Return the parent of a process, 0 if the process has ended."""
    try:
        return procfs.stat(pid).parent
    except OSError:
        return 0


def test_a_shell_names_the_child_whose_threads_wait(compiler: Compiler) -> None:
    with Target(shell(compiler.program("accounts_deadlock"))) as target:
        target.expect("ready")
        child = child_of(target.pid)
        snapshots: list[Snapshot] = []

        def is_named() -> bool:
            with closing(attach(target.pid)) as source:
                snapshots.append(source.scan(resolve=True))
            return bool(snapshots[-1].waiting_children)

        until(is_named, "a child with waits")
        (waits,) = snapshots[-1].waiting_children
        assert (waits.pid, waits.waiting) == (child, 2)
        said = f"accounts_deadlo ({child}), a child, has 2 threads that wait for at least "
        hint = f"locktop -p {child}"
        for text in (
            line_text(headline(SnapshotIndex(snapshots[-1]), 120)),
            render(snapshots[-1], width=120),
            "\n".join(check_report.lines(snapshots[-1], width=120)),
        ):
            assert said in text
            assert hint in text


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ('"$0"; true', "waits for the end of"),
        ('text=$("$0"); true', "reads from a pipe of"),
    ],
    ids=["end", "output"],
)
def test_a_process_that_waits_for_a_child_names_it(
    compiler: Compiler, script: str, words: str
) -> None:
    """The first screen said that no thread waits for a lock that is watched."""
    command: list[str | Path] = ["/bin/sh", "-c", script, compiler.program("ring_of_three")]
    with Target(command) as target, closing(attach(target.pid)) as source:
        snapshots: list[Snapshot] = []

        def is_awaited() -> bool:
            snapshots.append(source.scan(resolve=True))
            child = snapshots[-1].awaited_child
            return child is not None and child.comm == "ring_of_three"

        until(is_awaited, "the child")
        child = child_of(target.pid)
        said = f"sh {words} its child ring_of_three ({child}): locktop why {target.pid}"
        for text in (
            line_text(headline(SnapshotIndex(snapshots[-1]), 80)),
            render(snapshots[-1], width=120),
            "\n".join(check_report.lines(snapshots[-1], width=120)),
        ):
            assert said in text


def test_a_child_that_nobody_waits_for_is_not_named(compiler: Compiler) -> None:
    """The shell reads a pipe of the test, and its child has no end of it."""
    command: list[str | Path] = [
        "/bin/sh",
        "-c",
        '"$0" & echo ready; read line',
        compiler.program("ring_of_three"),
    ]
    with Target(command) as target, closing(attach(target.pid)) as source:
        target.expect("ready")
        until(lambda: procfs.stat(target.pid).state == "S", "sleep")
        child_of(target.pid)
        assert source.scan().awaited_child is None


def test_a_process_with_waits_of_its_own_names_no_child(compiler: Compiler) -> None:
    with Target([compiler.program("accounts_deadlock")]) as target:
        target.expect("ready")
        with closing(attach(target.pid)) as source:
            assert source.scan().waiting_children == ()


def test_a_child_without_waits_is_not_named(compiler: Compiler) -> None:
    with (
        Target(shell(compiler.program("ring_of_three"))) as target,
        closing(attach(target.pid)) as source,
    ):
        assert source.scan().waiting_children == ()
        assert source.scan().waiting_children == ()
