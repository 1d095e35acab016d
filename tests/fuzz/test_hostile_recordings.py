"""A recording of a stranger gives snapshots or one line, in bounded time and memory.

`make fuzz` takes longer, see test_damaged_files.py. `make fuzz-recordings` looks for new inputs.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard
from support.driven import opened, settle
from unit.builders import scenarios

from fuzz import hostile_recordings as hostile
from fuzz.test_damaged_files import FIRST, MAX_S, ROUNDS, peak, reset_peak
from locktop.collector.errors import LocktopError
from locktop.collector.recording import frame_format, frame_scan, recording, snapshot_payload
from locktop.collector.recording.frame_format import FrameType
from locktop.collector.recording.frame_index import TRAILER, TRAILER_WORD
from locktop.collector.recording.recording import Recording
from locktop.tui.app import LocktopApp
from locktop.tui.feed import ReplayFeed

CORPUS = sorted((Path(__file__).parent / "corpus/recordings").iterdir())
_NS = 1_000_000_000
#: A frame of the largest size, decoded and written again.
MAX_MEMORY = 600 << 20
#: A recording of some kilobytes may take so much.
MAX_MEMORY_OF_SMALL = 100 << 20


_KEYS = (
    "right_square_bracket",
    "left_square_bracket",
    "left_curly_bracket",
    "right_curly_bracket",
    "home",
    "end",
    "d",
    "c",
    "escape",
)
_ZOOMS = ("plus", "n", "v", "escape")


@pytest.fixture
def path() -> Iterator[Path]:
    """A file in memory."""
    found = Path(f"/dev/shm/locktop-test-hostile-{os.getpid()}")
    yield found
    found.unlink(missing_ok=True)


def sound(second: int = 0) -> bytes:
    """A frame with a sound snapshot."""
    payload = hostile.payload_of(scenarios.normal)
    return hostile.packed(FrameType.KEY, payload, hostile.BEGIN_NS + second * _NS)


def zeros(size: int, type_: FrameType = FrameType.KEY, before: bytes | None = None) -> bytes:
    """A small frame that unpacks to many zeros."""
    stored = frame_format.packed(bytes(size), before)
    return hostile.frame(type_, stored, hostile.BEGIN_NS, size)


@pytest.mark.parametrize("file", CORPUS, ids=lambda file: file.name)
def test_an_input_that_was_found_before_stays_harmless(file: Path, path: Path) -> None:
    path.write_bytes(hostile.from_input(file.read_bytes()))
    hostile.examine(path)


def test_damage_behind_right_checksums_gives_one_line_or_snapshots(path: Path) -> None:
    used = 0
    before = reset_peak()
    for seed in range(int(FIRST or 0), int(FIRST or 0) + int(ROUNDS)):
        path.write_bytes(hostile.hostile(seed))
        began = time.thread_time()
        try:
            used += hostile.examine(path)
        except Exception as error:
            raise AssertionError(f"the recording of seed {seed}") from error
        assert time.thread_time() - began < MAX_S, f"the recording of seed {seed}"
    assert peak() - before < MAX_MEMORY
    assert used, "every recording was refused, so nothing was tested"


def test_few_bytes_take_little_memory(path: Path) -> None:
    """Such bytes took 3 GB: a list of tiny lists takes 30 times its bytes."""
    for seed in range(int(FIRST or 0), int(FIRST or 0) + int(ROUNDS) // 2):
        content = hostile.crowded(seed)
        if len(content) > 100_000:
            continue
        path.write_bytes(content)
        before = reset_peak()
        hostile.examine(path)
        assert peak() - before < MAX_MEMORY_OF_SMALL, f"the recording of seed {seed}"


async def test_the_screen_draws_what_can_be_read(path: Path) -> None:
    drawn = 0
    async with opened() as screen:
        for seed in range(int(FIRST or 0), int(FIRST or 0) + int(ROUNDS) // 2):
            path.write_bytes(hostile.hostile(seed))
            try:
                found = Recording(path)
            except LocktopError:
                continue
            for time_ns in found.times_ns()[1:2]:
                try:
                    await screen.show(found.snapshot_at(time_ns))
                except LocktopError:
                    continue
                await screen.keys(*(("tab",), ("enter", "escape"), ("d", "escape"))[seed % 3])
                drawn += 1
            found.close()
    assert drawn


async def test_a_replay_goes_through_what_can_be_read(path: Path) -> None:
    """The keys of the past, of the time line and of the heat map."""
    replayed = 0
    for seed in range(int(FIRST or 0), int(FIRST or 0) + int(ROUNDS) // 12):
        chance = random.Random(seed)
        path.write_bytes(hostile.hostile_records(seed))
        try:
            found = Recording(path)
        except LocktopError:
            continue
        if found.times_ns():
            app = LocktopApp(ReplayFeed(), moments=found, is_replay=True, environ={})
            async with app.run_test(size=chance.choice([(80, 24), (160, 45)])) as pilot:
                for key in [*chance.choices(_KEYS, k=3), chance.choice("TH"), *_ZOOMS]:
                    await pilot.press(key)
                    await settle(pilot)
            replayed += 1
        found.close()
    assert replayed


def one_line_of(content: bytes, path: Path) -> str:
    """Open and use a recording; return its damage and its error."""
    path.write_bytes(content)
    line, before, began = "", reset_peak(), time.thread_time()
    try:
        found = Recording(path)
        line = found.damage
        for time_ns in found.times_ns():
            hostile.use(found.snapshot_at(time_ns))
        found.notables()
    except LocktopError as error:
        line += f"; {error}"
    assert time.thread_time() - began < 4 * MAX_S
    assert peak() - before < MAX_MEMORY
    assert "\n" not in line
    return line


def _chain_of(count: int, size: int) -> bytes:
    before = bytes(size)
    changes = [zeros(size, FrameType.CHANGE, before) for _ in range(count - 1)]
    return zeros(size) + b"".join(changes)


_STORED = zstandard.compress(b"x" * 100)
_MAX = frame_format.MAX_UNPACKED
_STRANGE: dict[str, tuple[Callable[[], bytes], str]] = {
    "the largest frame": (
        lambda: hostile.packed(FrameType.KEY, random.Random(5).randbytes(_MAX)),
        "is damaged",
    ),
    "few bytes that promise the largest frame": (lambda: zeros(_MAX), "promises far more"),
    "a larger frame": (lambda: sound() + zeros(_MAX + 1), "damaged at byte"),
    "another size": (
        lambda: hostile.frame(FrameType.KEY, _STORED, hostile.BEGIN_NS, 99),
        "another size",
    ),
    "a long chain": (lambda: _chain_of(65, 100), "a chain of snapshots is too long"),
    "a large chain": (lambda: _chain_of(3, 30 << 20), "a chain of snapshots is too long"),
    "a chain without a begin": (
        lambda: zeros(9, FrameType.CHANGE) + sound(),
        "a chain of snapshots has no begin",
    ),
    "times that go back": (lambda: sound(1) + sound(0), "its times go back"),
    "deep nesting": (
        lambda: hostile.packed(FrameType.KEY, b"\x91" * 1_000_000),
        "is damaged",
    ),
    "long notable moments": (
        lambda: sound() + hostile.frame(FrameType.NOTABLES, b"\x91" * (2 << 20)),
        "damaged at byte",
    ),
    "no frame": (lambda: b"", "cut off"),
}  # fmt: skip


@pytest.mark.parametrize("name", _STRANGE)
def test_a_strange_recording_gives_one_line(name: str, path: Path) -> None:
    make, line = _STRANGE[name]
    assert line in one_line_of(hostile.header() + make(), path)


def test_a_million_tiny_frames_are_read_in_bounded_memory(path: Path) -> None:
    tiny = hostile.frame(FrameType.END, b"\xa0")
    content = hostile.header() + sound() + tiny * (frame_scan.MAX_FRAMES + 10)
    assert f"more than {frame_scan.MAX_FRAMES} frames" in one_line_of(content, path)


@pytest.mark.parametrize("shift", [0, 1, -1, 1 << 40])
def test_an_index_that_leads_nowhere_is_ignored(
    shift: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only large files have their index read."""
    monkeypatch.setattr(recording, "CHECKED_WHOLE", 0)
    content = hostile.header() + sound()
    at = len(content)
    itself = hostile.frame(FrameType.INDEX, hostile.msgpacked([at + shift, [[0, 2, 0, 0, 0]]]))
    path.write_bytes(content + itself + TRAILER.pack(at, TRAILER_WORD))
    found = Recording(path)
    assert found.times_ns() == [hostile.BEGIN_NS]
    assert found.snapshot_at(hostile.BEGIN_NS).process.comm == "store"
    found.close()


def test_a_map_of_millions_is_refused_before_it_is_made() -> None:
    payload = hostile.payload_of(scenarios.normal)
    name = b"\xa3why"
    assert payload.count(name) == 1
    at = payload.index(name) + len(name)
    many = b"\xdf\x01\0\0\0" + b"\xce\0\0\0\0\xa0" * (1 << 20)
    before = reset_peak()
    with pytest.raises(LocktopError, match="more parts"):
        snapshot_payload.decode(payload[:at] + many + payload[at:])
    assert peak() - before < 50 << 20
