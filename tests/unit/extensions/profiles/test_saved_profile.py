"""Files with one profile: sound, damaged and hostile ones."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from unit.builders.self_profiles import CODE, START, kept, self_profile

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.profiles import saved_profile
from locktop.collector.extensions.profiles.profile_listing import listing

KEPT = kept(self_profile({0: 5, 8: 2}, elsewhere=3, lost=1, threads=2, ran_s=1.5))


def document() -> dict[str, Any]:
    whole: dict[str, Any] = json.loads(saved_profile.encode(KEPT))
    return whole


def parsed(whole: object) -> Any:
    return saved_profile.parse(json.dumps(whole).encode(), "file")


def test_a_saved_profile_is_read_back_whole() -> None:
    data = saved_profile.encode(KEPT)
    assert saved_profile.is_saved_profile(data)
    found = saved_profile.parse(data, "file")
    assert found == KEPT
    assert listing([found]).rows == listing([KEPT]).rows


def test_code_of_the_largest_size_is_read_back() -> None:
    data = random.Random(1).randbytes(saved_profile.MAX_CODE)
    region = KEPT.profile.regions[0]
    large = type(region)(start=START, size=len(data), module=region.module)
    whole = kept(self_profile({0: 5}, regions=(large,)), data)
    assert saved_profile.parse(saved_profile.encode(whole), "file") == whole


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("version",), 2),
        (("format",), "locktop.snapshot"),
        (("profile",), None),
        (("profile", "interval"), None),
        (("profile", "bucket_size"), 0),
        (("profile", "bucket_size"), 12),
        (("profile", "bucket_size"), 1 << 40),
        (("profile", "samples"), -1),
        (("profile", "samples"), 1 << 70),
        (("profile", "ran_s"), 1e300),
        (("profile", "state"), "asleep"),
        (("profile", "regions"), []),
        (("profile", "regions", 0, "size"), 0),
        (("profile", "regions", 0, "start"), "0xfffffffffffffff8"),
        (("profile", "regions", 0, "start"), "five"),
        (("profile", "buckets", 0, "address"), "0x5001"),
        (("profile", "buckets", 0, "address"), "0x4ffc"),
        (("profile", "buckets", 0, "count"), "many"),
        (("code", 0, "code"), ["zz"]),
        (("code", 0, "code"), ["00"]),
        (("code", 0, "code"), ["é"]),
        (("code", 0, "start"), "0x1"),
        (("code", 0, "code"), ["00" * 2000] * 200),
        (("lines", 0, "address"), 7),
        (("lines", 0, "line"), -1),
    ],
)
def test_a_wrong_field_is_refused_in_one_line(path: tuple[Any, ...], value: object) -> None:
    whole = document()
    inner: Any = whole
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    with pytest.raises(LocktopError) as refused:
        parsed(whole)
    assert str(refused.value).startswith("file is no profile of locktop: ")
    assert "\n" not in str(refused.value)


def test_texts_of_a_stranger_are_cleaned_and_numbers_of_lines_bounded() -> None:
    whole = document()
    whole["profile"]["name"] = "a\x1b[2Jb\n"
    whole["process"]["comm"] = "x" * 100_000
    whole["lines"] = [{"address": hex(START), "file": "\x07"}] * 10_000
    found = parsed(whole)
    assert "\x1b" not in found.profile.name
    assert len(found.comm) <= 4096
    assert len(found.lines) < 10_000
    assert found.lines[0].file == "?"


def test_too_many_buckets_and_regions_are_refused() -> None:
    whole = document()
    whole["profile"]["regions"] *= 9
    with pytest.raises(LocktopError, match="9 regions"):
        parsed(whole)
    whole = document()
    whole["profile"]["buckets"] = [{"address": hex(START), "count": 1}] * 70_000
    with pytest.raises(LocktopError, match="over 65536 buckets"):
        parsed(whole)


def test_damaged_bytes_never_do_more_than_refuse() -> None:
    data, chance = saved_profile.encode(KEPT), random.Random(7)
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            found = saved_profile.parse(bytes(damaged), "file")
        except LocktopError:
            continue
        assert len(listing([found]).rows) <= len(CODE)


def test_only_regular_files_of_a_sane_size_are_read(tmp_path: Path) -> None:
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(saved_profile.MAX_BYTES + 1)
    for path in (large, tmp_path, tmp_path / "missing", Path("/dev/null")):
        with pytest.raises(LocktopError, match=str(path)):
            saved_profile.read_file(str(path))
