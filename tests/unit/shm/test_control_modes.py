"""The mode that a level gives the hooks, and claims that lapse."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.shared_file import SharedFile

from locktop.collector.errors import LocktopError
from locktop.collector.native import lib
from locktop.collector.shm import control
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.control import Claim, ControlPage
from locktop.collector.shm.layout import CONTROL, Control
from locktop.collector.shm.segment import SharedMemory

DORMANT, COUNTING = lib.LT_LEVEL_DORMANT, lib.LT_LEVEL_COUNTING
CONTENDED, ALL = lib.LT_LEVEL_CONTENDED, lib.LT_LEVEL_ALL


class Page:
    """A file with a control page."""

    def __init__(self, directory: Path) -> None:
        self.file = SharedFile()
        self.path = self.file.save(directory)
        self.memory = SharedMemory(os.open(self.path, os.O_RDWR), str(self.path))

    def set(self, epoch: int, level: int, base: int, **fields: int) -> None:
        page = self.file.control
        page.mode, page.base_level = epoch << 8 | level, base
        for name, value in fields.items():
            setattr(page, name, value)
        self.path.write_bytes(self.file.data)

    def get(self) -> Control:
        return CONTROL.unpack(self.path.read_bytes(), lib.LT_CONTROL_OFFSET)

    def claim(self) -> Claim:
        return Claim(self.memory, Clock(self.memory.header()))


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    page = Page(tmp_path)
    yield page
    page.memory.close()


@pytest.mark.parametrize(
    ("epoch", "before", "name", "mode"),
    [
        (1, CONTENDED, "all", 1 << 8 | ALL),
        (1, CONTENDED, "dormant", 2 << 8 | DORMANT),
        (2, DORMANT, "counting", 3 << 8 | COUNTING),
        (2, DORMANT, "dormant", 2 << 8 | DORMANT),
        (0xFFFFFF, DORMANT, "all", ALL),
    ],
)
def test_an_epoch_begins_where_the_hooks_fall_asleep_or_wake_up(
    page: Page, epoch: int, before: int, name: str, mode: int
) -> None:
    page.set(epoch, before, before, claim_pid=7)
    former = control.set_level(page.memory, name)
    now = page.get()
    assert former == control.LEVEL_NAMES[before]
    assert (now.mode, now.base_level, now.claim_pid) == (mode, mode & 0xFF, 0)


def test_an_unknown_level_counts_as_dormant(page: Page) -> None:
    page.set(1, 99, CONTENDED)
    assert control.level_name(page.get()) == "dormant"


def test_a_level_for_a_file_that_was_cut_off_is_an_error(page: Page) -> None:
    os.truncate(page.path, lib.LT_CONTROL_OFFSET + 2)
    with pytest.raises(LocktopError, match="the file was cut off"):
        control.set_level(page.memory, "all")


def test_a_process_that_is_not_dormant_is_not_claimed(page: Page) -> None:
    page.set(1, COUNTING, COUNTING)
    claim = page.claim()
    claim.close()
    assert (page.get().mode, page.get().claim_pid, claim.note) == (1 << 8 | COUNTING, 0, "")


@pytest.mark.parametrize(
    ("level", "mode"),
    [(DORMANT, 4 << 8 | CONTENDED), (COUNTING, 3 << 8 | CONTENDED),
     (CONTENDED, 3 << 8 | CONTENDED), (ALL, 3 << 8 | ALL)],
)  # fmt: skip
def test_a_claim_raises_a_lower_level_alone(page: Page, level: int, mode: int) -> None:
    page.set(3, level, DORMANT)
    page.claim().close()
    now = page.get()
    assert (now.mode, now.claim_pid, now.claim_level) == (mode, os.getpid(), CONTENDED)
    assert now.claim_ticks > 0


def test_the_claim_of_another_reader_stays_and_is_renewed(page: Page) -> None:
    page.set(3, CONTENDED, DORMANT, claim_pid=7, claim_level=CONTENDED)
    page.claim().close()
    now = page.get()
    assert (now.claim_pid, now.claim_level, now.mode) == (7, CONTENDED, 3 << 8 | CONTENDED)
    assert now.claim_ticks > 0


def test_only_its_own_reader_renews_a_claim_on_a_higher_level(page: Page) -> None:
    page.set(3, ALL, DORMANT, claim_pid=7, claim_level=ALL, claim_ticks=5)
    page.claim().close()
    now = page.get()
    assert (now.claim_pid, now.claim_level, now.mode) == (7, ALL, 3 << 8 | ALL)
    assert now.claim_ticks == 5


def test_a_closed_claim_lets_its_thread_end(page: Page) -> None:
    page.set(1, DORMANT, DORMANT)
    before = threading.active_count()
    claim = page.claim()
    assert threading.active_count() == before + 1
    claim.close()
    claim.close()
    assert threading.active_count() == before


def test_a_field_of_the_page_is_written_alone(page: Page) -> None:
    page.set(1, CONTENDED, COUNTING, claim_pid=7, claim_level=3, claim_ticks=1 << 40)
    controls = ControlPage(page.memory)
    before = controls.read()
    for field, value in (("claim_ticks", 1 << 50), ("mode", 5), ("base_level", 2)):
        controls.put(field, value)
        before = before._replace(**{field: value})
        assert controls.read() == before
    controls.close()
