"""Limits of CPU time, in both forms of control groups."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from locktop.collector.linux.cpu_limit import cpu_limit

V1 = "40 31 0:29 {root} {point} rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
V2 = "41 31 0:30 {root} {point} rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n"


class Tree:
    """A tree of groups. Process 1 is in the group /pods/one."""

    def __init__(self, directory: Path) -> None:
        self.point = directory / "mounted"
        self._proc = directory / "proc"
        for name in ("1", "self"):
            (self._proc / name).mkdir(parents=True)
        (self._proc / "1/cgroup").write_text("3:cpu,cpuacct:/pods/one\n0::/pods/one\n")
        self.mount("")

    def mount(self, form: str, root: str = "/") -> None:
        text = form.format(root=root, point=self.point)
        (self._proc / "self/mountinfo").write_text(text)

    def group(self, *names: str, **files: str) -> None:
        directory = self.point.joinpath(*names)
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (directory / name.replace("__", ".")).write_text(text)

    def limit(self) -> float | None:
        return cpu_limit(1, self._proc)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_the_least_limit_up_to_the_root_counts(tree: Tree) -> None:
    tree.mount(V2)
    tree.group("pods", "one", cpu__max="150000 100000\n")
    assert tree.limit() == 1.5
    tree.group("pods", cpu__max="50000 100000\n")
    assert tree.limit() == 0.5
    tree.group("pods", cpu__max="max 100000\n")
    assert tree.limit() == 1.5


def test_the_older_form_is_read(tree: Tree) -> None:
    tree.mount(V1)
    tree.group("pods", "one", cpu__cfs_quota_us="25000\n", cpu__cfs_period_us="100000\n")
    assert tree.limit() == 0.25
    tree.group("pods", "one", cpu__cfs_quota_us="-1\n")
    assert tree.limit() is None


def test_a_container_sees_its_part_of_the_tree(tree: Tree) -> None:
    tree.mount(V2, root="/pods/one")
    tree.group(cpu__max="30000 100000\n")
    assert tree.limit() == 0.3


def test_without_a_limit_there_is_none(tree: Tree) -> None:
    assert tree.limit() is None
    tree.mount(V2)
    assert tree.limit() is None


def test_this_process_is_read() -> None:
    limit = cpu_limit(os.getpid())
    assert limit is None or limit > 0
