"""The claim of the one reader that records all: what the control page has before, in and after."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.eventually import until
from support.shared_file import SharedFile

from locktop.collector.errors import LocktopError
from locktop.collector.native import lib
from locktop.collector.shm import control, recording_claim
from locktop.collector.shm.clock import Clock
from locktop.collector.shm.control import ControlPage
from locktop.collector.shm.layout import Control
from locktop.collector.shm.recording_claim import RecordingClaim
from locktop.collector.shm.segment import SharedMemory

DORMANT, CONTENDED, ALL = lib.LT_LEVEL_DORMANT, lib.LT_LEVEL_CONTENDED, lib.LT_LEVEL_ALL
PID, OTHER = 4711, 7


class Claimed:
    """A control page, and a claim on it."""

    def __init__(self, directory: Path) -> None:
        path = SharedFile().save(directory)
        self.memory = SharedMemory(os.open(path, os.O_RDWR), str(path))
        self.clock = Clock(self.memory.header())
        self.page = ControlPage(self.memory)
        self.claim = RecordingClaim(self.memory, self.clock, PID)
        self.set(mode=1 << 8 | CONTENDED, base_level=CONTENDED, claim_pid=0)

    def set(self, **fields: int) -> None:
        for name, value in fields.items():
            self.page.put(name, value)

    def set_other(self, level: int, ticks: int) -> None:
        self.set(claim_pid=OTHER, claim_level=level, claim_ticks=ticks)

    def now(self) -> Control:
        return self.page.read()


@pytest.fixture
def claimed(tmp_path: Path) -> Iterator[Claimed]:
    found = Claimed(tmp_path)
    yield found
    found.claim.put_back()
    found.page.close()
    found.memory.close()


def levels(now: Control) -> tuple[int, int]:
    return now.mode & 0xFF, now.base_level


def test_the_level_is_raised_and_put_back(
    claimed: Claimed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "RENEW_EVERY_S", 0.01)
    claimed.claim.take()
    first = claimed.now()
    assert (levels(first), first.claim_pid) == ((ALL, CONTENDED), os.getpid())
    until(lambda: claimed.now().claim_ticks > first.claim_ticks, "the claim is renewed")
    claimed.claim.check()
    claimed.claim.put_back()
    now = claimed.now()
    assert (levels(now), now.claim_pid) == ((CONTENDED, CONTENDED), 0)


@pytest.mark.parametrize("wanted", ["dormant", "counting", "contended", "all"])
def test_the_level_of_a_user_stays(claimed: Claimed, wanted: str) -> None:
    claimed.claim.take()
    control.set_level(claimed.memory, wanted)
    before = claimed.now()
    if wanted == "all":
        claimed.claim.check()
    else:
        changed = f"of process {PID} was changed meanwhile; it is {wanted} now"
        with pytest.raises(LocktopError, match=changed):
            claimed.claim.check()
    claimed.claim.put_back()
    assert claimed.now() == before


def test_a_level_that_was_changed_for_a_moment_is_noticed(claimed: Claimed) -> None:
    claimed.claim.take()
    control.set_level(claimed.memory, "counting")
    claimed.set(mode=1 << 8 | ALL)
    with pytest.raises(LocktopError, match="was changed meanwhile"):
        claimed.claim.check()


def test_a_process_at_the_level_all_needs_no_claim(claimed: Claimed) -> None:
    claimed.set(mode=1 << 8 | ALL, base_level=ALL)
    before = claimed.now()
    claimed.claim.take()
    claimed.claim.check()
    claimed.claim.put_back()
    assert claimed.now() == before


def test_another_recording_is_refused(claimed: Claimed) -> None:
    claimed.set(mode=1 << 8 | ALL)
    claimed.set_other(ALL, claimed.clock.now())
    before = claimed.now()
    with pytest.raises(LocktopError, match=rf"another locktop \(pid {OTHER}\) records all"):
        claimed.claim.take()
    claimed.claim.put_back()
    assert claimed.now() == before


def test_a_lapsed_recording_is_replaced(claimed: Claimed) -> None:
    claimed.set(mode=1 << 8 | ALL)
    claimed.set_other(ALL, 0)
    recording_claim.check_free(claimed.memory, claimed.clock, PID)
    claimed.claim.take()
    assert claimed.now().claim_pid == os.getpid()
    claimed.claim.put_back()
    assert levels(claimed.now()) == (CONTENDED, CONTENDED)


def test_the_one_that_took_the_claim_at_the_same_time_goes_on(claimed: Claimed) -> None:
    claimed.claim.take()
    claimed.set_other(ALL, claimed.clock.now())
    before = claimed.now()
    with pytest.raises(LocktopError, match=rf"another locktop \(pid {OTHER}\)"):
        claimed.claim.check()
    claimed.claim.put_back()
    assert claimed.now() == before


def test_the_claim_of_a_reader_of_a_dormant_process_comes_back(claimed: Claimed) -> None:
    claimed.set(mode=2 << 8 | CONTENDED, base_level=DORMANT)
    claimed.set_other(CONTENDED, claimed.clock.now())
    claimed.claim.take()
    assert (levels(claimed.now()), claimed.now().claim_pid) == ((ALL, DORMANT), os.getpid())
    claimed.claim.put_back()
    now = claimed.now()
    assert (levels(now), now.claim_pid, now.claim_level) == ((CONTENDED, DORMANT), OTHER, CONTENDED)


def test_the_claim_of_an_ended_reader_does_not_come_back(claimed: Claimed) -> None:
    claimed.set(mode=2 << 8 | CONTENDED, base_level=DORMANT)
    claimed.set_other(CONTENDED, 0)
    claimed.claim.take()
    claimed.claim.put_back()
    now = claimed.now()
    assert (now.mode, now.claim_pid) == (3 << 8 | DORMANT, 0)
    # No user removed the claim, so another reader may claim the process from now on.
    assert control.claim_age_s(now, claimed.clock) > control.SURELY_VALID_S


def test_a_claim_that_was_never_taken_changes_nothing(claimed: Claimed) -> None:
    before = claimed.now()
    claimed.claim.put_back()
    assert claimed.now() == before


def test_a_file_that_is_cut_off_is_an_error(claimed: Claimed) -> None:
    os.truncate(claimed.memory.path, lib.LT_CONTROL_OFFSET + 2)
    with pytest.raises(LocktopError, match="cut off"):
        claimed.claim.take()
