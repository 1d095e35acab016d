"""The profiles of a program's own code, read from sound and damaged files."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest
from support.shared_file import SharedFile, monotonic_clock

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.profiles import profile_table
from locktop.collector.extensions.profiles.model import ProfileBucket, ProfileState, SelfProfile
from locktop.collector.extensions.profiles.profile_table import ProfileTable
from locktop.collector.native import lib
from locktop.collector.shm.segment import SharedMemory

START = 0x5500


def read(file: SharedFile, directory: Path, now: int = 0) -> tuple[SelfProfile, ...]:
    """Return the profiles of a file."""
    path = file.save(directory)
    with closing(opened(path)) as memory:
        return ProfileTable(memory, monotonic_clock()).read(now)


def opened(path: Path) -> SharedMemory:
    """Open a saved file."""
    return SharedMemory(os.open(path, os.O_RDONLY), str(path))


def test_a_profile_has_its_buckets_with_samples_at_their_addresses(tmp_path: Path) -> None:
    file = SharedFile()
    entry = file.add_profile(
        [(START, 10), (0x9000, 8)],
        [7, 0, 2, 0, 5],
        source=lib.LT_SOURCE_PAGE_FAULTS,
        all_threads=1,
        elsewhere=3,
        lost=4,
        threads=2,
        left_out=1,
    )
    entry.name[0:3] = list(b"hot")
    entry.region[0].module[0:4] = list(b"/a/b")
    entry.region[0].offset = 0x500
    (found,) = read(file, tmp_path)
    assert found.buckets == (
        ProfileBucket(START, 7), ProfileBucket(START + 8, 2), ProfileBucket(0x9004, 5),
    )  # fmt: skip
    assert (found.number, found.name, found.source, found.unit) == (
        1,
        "hot",
        "page faults",
        "events",
    )
    assert (found.samples, found.elsewhere, found.lost) == (14, 3, 4)
    assert (found.threads, found.threads_left_out, found.all_threads) == (2, 1, True)
    assert [(one.start, one.size, one.module, one.offset) for one in found.regions] == [
        (START, 10, "/a/b", 0x500), (0x9000, 8, "", 0),
    ]  # fmt: skip
    assert found.buckets_left_out == 0


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (lib.LT_PROFILE_STOPPED, ProfileState.STOPPED),
        (lib.LT_PROFILE_RUNNING, ProfileState.RUNNING),
        (lib.LT_PROFILE_UNLOADED, ProfileState.UNLOADED),
        (lib.LT_PROFILE_TAKEN_OVER, ProfileState.TAKEN_OVER),
    ],
)
def test_the_state_of_a_profile(state: int, expected: ProfileState, tmp_path: Path) -> None:
    file = SharedFile()
    file.add_profile([(START, 4)], [1], state=state)
    assert [one.state for one in read(file, tmp_path)] == [expected]


def test_the_time_of_a_running_profile_goes_on(tmp_path: Path) -> None:
    file = SharedFile()
    file.add_profile([(START, 4)], [1], ran_ticks=10**9, started=5 * 10**9)
    assert read(file, tmp_path, now=7 * 10**9)[0].ran_s == pytest.approx(3.0)
    assert read(file, tmp_path, now=4 * 10**9)[0].ran_s == pytest.approx(1.0)


@pytest.mark.parametrize(
    "fields",
    [
        {"state": lib.LT_PROFILE_FREE},
        {"state": 99},
        {"seq": 3},
        {"source": 99},
        {"bucket_size": 3},
        {"bucket_size": 6},
        {"bucket_size": 0},
        {"region_count": 0},
        {"region_count": lib.LT_PROFILE_REGIONS + 1},
        {"bucket_count": 1},
        {"bucket_count": 1 << 40},
        {"counts": 0},
        {"counts": 8193},
    ],
)
def test_a_free_or_damaged_entry_is_left_out(fields: dict[str, int], tmp_path: Path) -> None:
    file = SharedFile()
    file.add_profile([(START, 8)], [1, 2], **fields)
    file.add_profile([(START, 8)], [1, 2])
    assert [one.number for one in read(file, tmp_path)] == [2]


def test_a_region_beyond_the_end_of_all_addresses_is_damaged(tmp_path: Path) -> None:
    file = SharedFile()
    file.add_profile([((1 << 64) - 4, 8)], [1, 2])
    file.add_profile([(START, 0)], [])
    assert not read(file, tmp_path)


def test_counts_beyond_the_end_of_the_file_are_damage(tmp_path: Path) -> None:
    file = SharedFile()
    file.add_profile([(START, 8)], [1, 2], counts=len(file.data) - 8)
    with pytest.raises(LocktopError, match="truncated or damaged"):
        read(file, tmp_path)


def test_more_profiles_than_there_may_be_are_damage(tmp_path: Path) -> None:
    file = SharedFile()
    file.header.profiles.count = lib.LT_PROFILES + 1
    with pytest.raises(LocktopError, match="truncated or damaged"):
        read(file, tmp_path)


def test_the_buckets_with_the_fewest_samples_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profile_table, "MAX_BUCKETS", 3)
    file = SharedFile()
    file.add_profile([(START, 24)], [1, 100, 0, 1, 60, 9])
    (found,) = read(file, tmp_path)
    assert [bucket.count for bucket in found.buckets] == [100, 60, 9]
    assert found.buckets_left_out == 2


def test_counts_are_read_again_when_there_are_new_samples(tmp_path: Path) -> None:
    file = SharedFile()
    entry = file.add_profile([(START, 4)], [1])
    path = file.save(tmp_path)
    with closing(opened(path)) as memory:
        table = ProfileTable(memory, monotonic_clock())
        first = table.read(0)
        assert table.read(0)[0].buckets is first[0].buckets
        file.data[entry.counts] = 9
        entry.samples = 9
        path.write_bytes(file.data)
        assert table.read(0)[0].buckets == (ProfileBucket(START, 9),)


def test_a_profile_that_ends_while_its_counts_are_read_is_left_out(tmp_path: Path) -> None:
    file = SharedFile()
    entry = file.add_profile([(START, 4)], [1])
    path = file.save(tmp_path)
    with closing(opened(path)) as memory:
        read_counts = memory.read

        def read_and_end(offset: int, size: int) -> bytes:
            if offset == entry.counts:
                entry.seq += 2
                path.write_bytes(file.data)
            return read_counts(offset, size)

        memory.read = read_and_end  # type: ignore[method-assign]
        table = ProfileTable(memory, monotonic_clock())
        assert table.read(0) == ()
        memory.read = read_counts  # type: ignore[method-assign]
        assert len(table.read(0)) == 1


def test_many_profiles_of_the_same_counts_are_damage(tmp_path: Path) -> None:
    """A copy of all of them would take eight gigabytes, and their buckets more."""
    file = SharedFile()
    size = lib.LT_PROFILE_BUCKETS * 4
    for _ in range(lib.LT_PROFILES):
        entry = file.add_profile([(START, size)], [])
        entry.bucket_count, entry.counts = lib.LT_PROFILE_BUCKETS, 1 << 21
    path = file.save(tmp_path)
    os.truncate(path, 1 << 26)
    with closing(opened(path)) as memory:
        found = ProfileTable(memory, monotonic_clock()).read(0)
        assert len(found) * 8 * lib.LT_PROFILE_BUCKETS <= memory.max_bytes


def test_all_profiles_together_have_a_bounded_number_of_buckets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profile_table, "MAX_ALL_BUCKETS", 3)
    file = SharedFile()
    for _ in range(2):
        file.add_profile([(START, 8)], [4, 1])
    found = read(file, tmp_path)
    assert [len(one.buckets) for one in found] == [2, 1]
    assert [one.buckets_left_out for one in found] == [0, 1]
