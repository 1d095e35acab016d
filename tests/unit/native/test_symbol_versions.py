"""The compiled parts need no glibc newer than 2.17, which manylinux2014 promises."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.symbol_versions import OLDEST, compiled_parts, is_newer, needed_versions

import locktop

PARTS = [part for directory in locktop.__path__ for part in compiled_parts(Path(directory))]


def test_the_installation_has_all_parts() -> None:
    assert {part.name for part in PARTS} == {
        "liblocktop.so",
        "liblocktop-nop.so",
        "liblocktop-reader.so",
        "locktop-bench",
        "locktop-branch-demo",
        "locktop-demo",
    }


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_a_part_needs_an_old_glibc_alone(part: Path) -> None:
    needed = needed_versions(part)
    assert any(version.startswith("GLIBC_") for _, version in needed)
    too_new = {symbol for symbol, version in needed if is_newer(version)}
    assert not too_new, f"newer than {OLDEST}: see native/portable/"


def test_versions_are_compared_as_numbers() -> None:
    assert not is_newer("GLIBC_2.2.5")
    assert not is_newer("GLIBC_2.17")
    assert is_newer("GLIBC_2.18")
    assert is_newer("GLIBC_2.34")
    assert not is_newer("GCC_4.2.0")
