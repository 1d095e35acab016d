"""Call trees are copied out of the shared memory with their open calls, and damage is noticed."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.calls.call_trees import CallTrees
from locktop.collector.native import ffi, lib
from locktop.collector.shm.segment import SharedMemory

THREAD_AT, TREE_AT, FRAMES_AT, FIRST_AT, SECOND_AT = 8192, 16384, 20480, 24576, 28672
SIZE, FIRST = 1 << 16, 2
NOW = 10_000


class Tree:
    """A file with one tree: a root, ``f`` below the root and ``g`` below ``f``; ``f`` is open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.thread = ffi.new("struct lt_thread *")
        self.thread.calls, self.thread.waited = TREE_AT, 77
        self.calls = ffi.new("struct lt_calls *")
        self.calls.depth, self.calls.depth_room, self.calls.frames = 2, 32, FRAMES_AT
        self.calls.last, self.calls.control = 9_000, 257
        self.calls.nodes.count, self.calls.nodes.first = 3, FIRST
        self.calls.nodes.element_size = ffi.sizeof("struct lt_call")
        self.calls.nodes.chunk[0], self.calls.nodes.chunk[1] = FIRST_AT, SECOND_AT
        self.frames = ffi.new("struct lt_call_frame[]", 32)
        self.frames[1].begin, self.frames[1].index, self.frames[1].callee_ticks = 1_000, 1, 300
        self.nodes = ffi.new("struct lt_call[]", 6)
        for index, function in enumerate((0, 0x100, 0x200)):
            node = self.nodes[index]
            node.function, node.index, node.parent = function, index, max(index - 1, 0)
            node.count, node.ticks = index, 300 * (index == 2)

    def data(self) -> bytearray:
        data = bytearray(SIZE)
        for at, value in (
            (THREAD_AT, self.thread),
            (TREE_AT, self.calls),
            (FRAMES_AT, self.frames),
            (FIRST_AT, self.nodes[0:FIRST]),
            (SECOND_AT, self.nodes[FIRST:6]),
        ):
            raw = bytes(ffi.buffer(value))
            data[at : at + len(raw)] = raw
        return data

    def save(self) -> None:
        self.path.write_bytes(self.data())


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = Tree(tmp_path / "file")
    made.save()
    return made


@pytest.fixture
def trees(tree: Tree) -> Iterator[CallTrees]:
    memory = SharedMemory(os.open(tree.path, os.O_RDONLY), str(tree.path))
    yield CallTrees(memory, lambda: NOW)
    memory.close()


def test_nodes_and_open_calls_are_read(trees: CallTrees) -> None:
    found = trees.thread_tree(THREAD_AT)
    assert found is not None
    assert [(node.function, node.parent, node.count, node.ticks) for node in found.nodes] == [
        (0, 0, 0, 0),
        (0x100, 0, 1, 0),
        (0x200, 1, 2, 300),
    ]
    assert [(call.index, call.begin, call.callee_ticks) for call in found.open] == [(1, 1_000, 300)]
    assert (found.now, found.waited, found.head.control) == (NOW, 77, 257)


def test_a_thread_without_calls_has_no_tree(tree: Tree, trees: CallTrees) -> None:
    tree.thread.calls = 0
    tree.save()
    assert trees.thread_tree(THREAD_AT) is None
    assert trees.ended_tree() is None


def test_a_tree_without_changes_is_not_copied_again(tree: Tree, trees: CallTrees) -> None:
    first = trees.thread_tree(THREAD_AT)
    again = trees.thread_tree(THREAD_AT)
    assert first is not None
    assert again is not None
    assert again.nodes is first.nodes
    tree.calls.last += 1
    tree.nodes[2].count += 1
    tree.save()
    changed = trees.thread_tree(THREAD_AT)
    assert changed is not None
    assert changed.nodes[2].count == first.nodes[2].count + 1


@pytest.mark.parametrize(
    ("field", "value"),
    [("count", 1 << 31), ("count", lib.LT_CALLS_NODES + 1), ("element_size", 8)],
)
def test_a_damaged_array_is_an_error(tree: Tree, trees: CallTrees, field: str, value: int) -> None:
    setattr(tree.calls.nodes, field, value)
    tree.save()
    with pytest.raises(LocktopError):
        trees.thread_tree(THREAD_AT)


def test_two_threads_with_one_tree_are_damage(tree: Tree, trees: CallTrees) -> None:
    """A thousand of them would be a thousand large trees."""
    other = THREAD_AT + ffi.sizeof("struct lt_thread")
    data = tree.data()
    data[other : other + ffi.sizeof("struct lt_thread")] = bytes(ffi.buffer(tree.thread))
    tree.path.write_bytes(data)
    assert trees.thread_tree(THREAD_AT) is not None
    with pytest.raises(LocktopError, match="two threads"):
        trees.thread_tree(other)
    assert trees.thread_tree(THREAD_AT) is not None


def test_any_damage_gives_a_tree_or_an_error(tree: Tree) -> None:
    memory = SharedMemory(os.open(tree.path, os.O_RDONLY), str(tree.path))
    for seed in range(500):
        chance = random.Random(seed)
        data = tree.data()
        for _ in range(chance.randrange(1, 6)):
            at = chance.choice((THREAD_AT, TREE_AT, FRAMES_AT)) + chance.randrange(400)
            data[at] = chance.choice((0, 1, 0x7F, 0xFF))
        tree.path.write_bytes(data)
        try:
            found = CallTrees(memory, lambda: NOW).thread_tree(THREAD_AT)
        except LocktopError:
            continue
        assert found is None or len(found.nodes) <= lib.LT_CALLS_NODES_ENDED
    memory.close()
