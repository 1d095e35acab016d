"""The index of the target programs: each name leads to one file."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.targets import TARGETS, TargetNameError, source_of


def test_a_name_leads_to_a_file_in_any_folder() -> None:
    assert source_of("ring_of_three") == TARGETS / "deadlock" / "ring_of_three.c"
    assert source_of("rust_primitives") == TARGETS / "languages" / "rust_primitives.rs"


def test_an_unknown_name_is_an_error_with_similar_names() -> None:
    with pytest.raises(TargetNameError, match=r"no target 'ring_of_four'.*ring_of_three"):
        source_of("ring_of_four")


def test_an_ambiguous_name_is_an_error_with_all_paths(tmp_path: Path) -> None:
    for topic, suffix in (("deadlock", "c"), ("fork", "cc")):
        (tmp_path / topic).mkdir()
        (tmp_path / topic / f"twice.{suffix}").touch()
    with pytest.raises(TargetNameError, match=r"ambiguous: deadlock/twice\.c, fork/twice\.cc"):
        source_of("twice", tmp_path)


def test_a_header_is_no_target() -> None:
    with pytest.raises(TargetNameError):
        source_of("scenarios")
