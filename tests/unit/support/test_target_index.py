"""The index of the target programs: each name leads to one file, and the README lists each name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.targets import TARGETS, TargetNameError, index_of, source_of

TESTS = TARGETS.parent
README = (TARGETS / "README.md").read_text()


def test_a_name_leads_to_a_file_in_any_folder() -> None:
    assert source_of("ring_of_three") == TARGETS / "deadlock" / "ring_of_three.c"
    assert source_of("rust_primitives") == TARGETS / "languages" / "rust_primitives.rs"


def test_names_are_unique_over_all_folders() -> None:
    assert {name: paths for name, paths in index_of(TARGETS).items() if len(paths) > 1} == {}


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


def test_the_readme_lists_each_target_under_its_topic() -> None:
    listed = {}
    for section in README.split("\n## ")[1:]:
        topic = section.partition("\n")[0]
        listed.update(dict.fromkeys(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE), topic))
    assert listed == {name: path.parent.name for name, (path,) in index_of(TARGETS).items()}


def test_the_readme_names_tests_that_exist() -> None:
    tests = {str(path.relative_to(TESTS).with_suffix("")) for path in TESTS.rglob("test_*.py")}
    named = set(re.findall(r"`(\w+/test_\w+)`", README))
    assert {name for name in named if not {name, f"integration/{name}"} & tests} == set()
