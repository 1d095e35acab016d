"""One profile by bucket, and two beside each other."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace
from unit.builders.self_profiles import CODE, START, kept, self_profile

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.profiles import text_report as text
from locktop.collector.extensions.profiles.instructions import instructions
from locktop.collector.extensions.profiles.kept_profile import profile_named
from locktop.collector.extensions.profiles.model import ProfileRegion
from locktop.collector.extensions.profiles.profile_listing import Listing, listing


def rows(found: Listing) -> dict[int, tuple[int, ...]]:
    return {row.offset: row.counts for row in found.rows}


def test_a_profile_has_the_buckets_with_samples_and_those_beside() -> None:
    found = listing([kept(self_profile({4: 3}))])
    assert rows(found) == {0: (0,), 4: (3,), 8: (0,), 12: (0,)}
    assert [one.instruction.text for one in found.rows[3].instructions] == [
        "test cl, cl",
        "jns +0x2",
    ]
    assert [row.line.line if row.line else 0 for row in found.rows] == [7, 0, 0, 9]


def test_without_code_there_are_only_buckets_with_samples() -> None:
    found = listing([kept(self_profile({4: 3}), b"")])
    assert rows(found) == {4: (3,)}
    assert found.notes == ("the code was not kept: instructions are missing",)


def test_two_profiles_are_joined_by_offset_wherever_the_code_lay() -> None:
    one = kept(self_profile({4: 30, 8: 10}, "random"))
    region = replace(one.profile.regions[0], start=0x9000, module="/other/prog")
    other = kept(self_profile({4: 2, 16: 5}, "sorted", 2, regions=(region,)))
    found = listing([one, other])
    assert {at: counts for at, counts in rows(found).items() if any(counts)} == {
        4: (30, 2), 8: (10, 0), 16: (0, 5),
    }  # fmt: skip
    worst = found.largest_difference
    assert worst is not None
    assert (worst.offset, worst.difference) == (4, -28)
    page = text.render(found, 100)
    assert "B : A  0.175" in page
    assert "largest difference: sum+0x4, A 30, B 2" in page
    assert max(map(len, page.splitlines())) <= 100


def test_a_narrow_contrast_keeps_the_column_of_source_lines() -> None:
    code = bytes.fromhex("48b8 8877665544332211") + bytes.fromhex("90" * 7)  # a long movabs
    one, other = (kept(self_profile({4: 30}, name), code) for name in ("random", "sorted"))
    page = text.render(listing([one, other]), 79).splitlines()
    (heading,) = [line for line in page if line.startswith("BUCKET")]
    assert heading.endswith(" SOURCE")
    assert any(line[: heading.index("SOURCE")].endswith("… ") for line in page)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"regions": (ProfileRegion(start=START, size=16, module="/bin/prog", offset=0x1000),)},
         "different regions: sum, 17 bytes, prog+0x1000, 16 bytes"),
        ({"regions": (ProfileRegion(start=START, size=17, module="/bin/prog", offset=0x2000),)},
         "different regions"),
        ({"regions": (ProfileRegion(start=START + 64, size=17),)}, "different regions"),
        ({"bucket_size": 8}, "buckets of different sizes: 4 and 8 bytes"),
    ],
)  # fmt: skip
def test_profiles_of_different_code_are_refused(change: dict[str, object], says: str) -> None:
    with pytest.raises(LocktopError, match=re.escape(says)):
        listing([kept(self_profile({}), b""), kept(self_profile({}, **change), b"")])


def test_profiles_of_different_builds_are_refused() -> None:
    other = kept(self_profile({}), bytes(len(CODE)))
    with pytest.raises(LocktopError, match="different builds"):
        listing([kept(self_profile({})), other])


def test_profiles_of_different_intervals_have_a_note_and_plots_of_their_own() -> None:
    one, other = self_profile({0: 100}), self_profile({0: 1}, interval=400_000_000)
    found = listing([kept(one), kept(other)])
    assert found.notes == ("the profiles differ in source or interval: compare shares, not counts",)
    page = text.render(found, 100)
    assert "B : A  1.000" in page
    bucket = next(line for line in page.splitlines() if line.startswith("+0x0 "))
    assert bucket.count("━") % 2 == 0


def test_two_equal_profiles_and_profiles_without_samples_have_no_difference() -> None:
    for counts in ({}, {4: 2}):
        found = listing([kept(self_profile(counts)), kept(self_profile(counts))])
        assert found.largest_difference is None
        assert "no bucket differs" in text.render(found)
    assert "no samples" in text.render(listing([kept(self_profile({}))]))


def test_a_profile_is_found_by_its_name_or_number() -> None:
    profiles = (self_profile({}, "a", 1), self_profile({}, "2", 5), self_profile({}, "b", 2))
    assert profile_named(profiles, "b", "p").number == 2
    assert profile_named(profiles, "1", "p").name == "a"
    assert profile_named(profiles, "2", "p").number == 5, "a name comes before a number"
    for name, says in (("c", "there are a, 2, b"), ("²", "there is no profile")):
        with pytest.raises(LocktopError, match=says):
            profile_named(profiles, name, "p")
    with pytest.raises(LocktopError, match="choose one of 1, 2"):
        profile_named((profiles[0], self_profile({}, "a", 2)), "a", "p")
    with pytest.raises(LocktopError, match="there is no profile;"):
        profile_named((), "a", "p")


def test_a_text_of_many_buckets_has_those_with_most_samples() -> None:
    region = ProfileRegion(start=START, size=1 << 16)
    counts = {4 * at: 1 + (at == 77) for at in range(text.MAX_ROWS + 10)}
    found = listing([kept(self_profile(counts, regions=(region,)), b"")])
    page = text.render(found)
    assert "10 buckets with fewer samples are left out" in page
    assert f"+{4 * 77:#x} " in page


def test_the_list_has_each_profile() -> None:
    page = text.render_list((self_profile({0: 1}), self_profile({}, "", 2, source="cycles")))
    assert [line.split()[:2] for line in page.splitlines()[1:]] == [["1", "sum"], ["2", "-"]]
    assert text.render_list(()).startswith("no profile")


@pytest.mark.parametrize("width", [80, 100, 200])
def test_a_long_name_does_not_move_the_columns_of_the_list(width: int) -> None:
    name = "a name of forty-seven bytes, which is the limit"
    head, *rows = text.render_list((self_profile({0: 1}, name), self_profile({}, "b", 2)), width)[
        :-1
    ].split("\n")
    assert [row.index("timer") for row in rows] == [head.index("SOURCE")] * 2
    assert name in rows[0] or "…" in rows[0]
    assert all(len(row) <= width for row in rows)


@pytest.mark.parametrize(
    ("code", "machine", "says"),
    [
        ("75fc", "x86_64", ["jne 0x4ffe"]),
        ("90 75fd", "x86_64", ["nop", "jne +0x0"]),
        ("1f2003d5 ecffff54", "aarch64", ["nop", "b.gt +0x0"]),
        ("ff", "x86_64", [".byte 0xff"]),
        ("90", "riscv64", []),
    ],
)
def test_instructions_have_offsets_of_jumps_within_the_code(
    code: str, machine: str, says: list[str]
) -> None:
    found = instructions(bytes.fromhex(code), START, machine)
    assert [one.text for one in found] == says
