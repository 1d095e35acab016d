"""The recorded stacks of a file: their addresses and frames."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.shared_file import SharedFile

from locktop.collector.model import Frame
from locktop.collector.model.frames import CUT_WHEN_RECORDED
from locktop.collector.native import lib
from locktop.collector.shm.segment import SharedMemory
from locktop.collector.sources.preload.stack_table import StackFrames
from locktop.collector.symbols.resolver import Resolver


class Addresses(Resolver):
    """Frames without names."""

    def __init__(self) -> None:
        pass

    def stack(self, key: int, addresses: tuple[int, ...]) -> tuple[Frame, ...]:
        return tuple(Frame(address, "", None, None, "", 0) for address in addresses)


def frames_of(file: SharedFile, directory: Path) -> StackFrames:
    path = file.save(directory)
    return StackFrames(SharedMemory(os.open(path, os.O_RDONLY), str(path)), Addresses())


def test_a_stack_has_the_recorded_addresses(tmp_path: Path) -> None:
    file = SharedFile()
    first, second = file.add_stack([0x10, 0x20, 0x30]), file.add_stack([0x40])
    frames = frames_of(file, tmp_path)
    assert frames.addresses(first) == (0x10, 0x20, 0x30)
    assert [frame.address for frame in frames.frames(second)] == [0x40]
    assert frames.frames(0) == ()


def test_a_stack_that_was_cut_says_so(tmp_path: Path) -> None:
    file = SharedFile()
    stack = file.add_stack([0x10, 0x20])
    file.struct_at("struct lt_stack", stack * lib.LT_STACK_UNIT).depth |= lib.LT_STACK_CUT
    frames = frames_of(file, tmp_path)
    assert frames.frames(stack)[-1] is CUT_WHEN_RECORDED
    assert frames.addresses(stack) == (0x10, 0x20)


def test_a_stack_beyond_the_file_is_empty(tmp_path: Path) -> None:
    file = SharedFile()
    frames = frames_of(file, tmp_path)
    assert frames.frames(len(file.data)) == ()


def test_a_damaged_depth_reads_no_more_than_the_longest_stack(tmp_path: Path) -> None:
    file = SharedFile()
    stack = file.add_stack([7] * (lib.LT_STACK_MAX + 1))
    assert len(frames_of(file, tmp_path).addresses(stack)) == lib.LT_STACK_MAX


def test_each_call_site_is_a_stack_of_its_own(tmp_path: Path) -> None:
    frames = frames_of(SharedFile(), tmp_path)
    one, other = frames.site_id(0x10), frames.site_id(0x20)
    assert one != other
    assert frames.site_id(0x10) == one
    assert [frame.address for frame in frames.frames(one)] == [0x10]
    assert frames.addresses(other) == (0x20,)
    assert frames.site_id(0) == 0


def test_the_ids_of_call_sites_are_beyond_every_stack_of_a_file(tmp_path: Path) -> None:
    frames = frames_of(SharedFile(), tmp_path)
    ids = [frames.site_id(site) for site in (0x10, 0x20, 0x30)]
    assert all((1 << 32) - 10 < one < 1 << 32 for one in ids)


@pytest.mark.parametrize("depth", [0, 1])
def test_a_stack_is_read_once(tmp_path: Path, depth: int) -> None:
    file = SharedFile()
    stack = file.add_stack([0x10] * depth)
    frames = frames_of(file, tmp_path)
    before = frames.addresses(stack)
    (tmp_path / file.name).write_bytes(b"")
    assert frames.addresses(stack) == before
