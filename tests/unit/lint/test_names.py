"""The lint finds old words and private names."""

from __future__ import annotations

from pathlib import Path

from lint.names import (
    FINISHED,
    is_finished,
    is_product,
    old_words_in_c,
    old_words_in_python,
    private_names,
    vague_attributes,
    vague_functions,
    vague_names,
    vague_names_in_c,
)
from support.documents import ROOT


def test_old_words_are_found_in_names_alone() -> None:
    python = "class Picture: pass\ndef f(told, shows): 'looked'\nself.spent_s = bared = 1\n"
    assert sorted(old_words_in_python(python)) == [
        (1, "an old word: Picture"),
        (2, "an old word: told"),
        (3, "an old word: spent_s"),
    ]
    c = """#define MAX_KNOTS 1 /* told
    asked */
    enum { LT_LOOK };
    struct picture { int *spent[1]; } a = {"bare", '"', "around"};
    """
    assert [(fault.line, fault.message.split()[-1]) for fault in old_words_in_c(c)] == [
        (1, "MAX_KNOTS"),
        (3, "LT_LOOK"),
        (4, "picture"),
        (4, "spent"),
    ]


def test_vague_names_are_found_in_c_alone() -> None:
    c = """int found; /* one of
    them is known at */ int held_at, *at = array_at(list.one);
    say("told");
    """
    assert [(fault.line, fault.message.split()[-1]) for fault in vague_names_in_c(c)] == [
        (1, "found"),
        (2, "at"),
        (2, "one"),
    ]


def test_private_names_of_others_are_found() -> None:
    code = "self._mine = other._its\nfrom a import _b\nx.setattr('a._c', 1)\ncls._d._replace()\n"
    found = {fault.line: fault.message.split()[-1] for fault in private_names(code)}
    assert found == {1: "_its", 2: "_b", 3: "_c"}


def test_vague_variables_attributes_and_functions_are_found() -> None:
    code = """
class Taken:
    at: int
    def of_lock(self, known, lock): ...
found: int = 1
for one, lock in locks: made_at = [at for at in lock]
async def _in(from_ns): ...
def office(): known_locks = of.found
def in_(): ...
class _Taken:
    at: int
class Held:
    _told: int
    def _found(self): self._known, self.at = self.of.known_at, other._known
    @on(Moved)
    def _moved(self): ...
    @property
    def _held(self): ...
def _scaled(): ...
def _is_unheard(): ...
"""
    assert sorted(vague_names(code)) == [
        (4, "a vague name: known"),
        (5, "a vague name: found"),
        (6, "a vague name: at"),
        (6, "a vague name: one"),
        (11, "a vague name: at"),
        (13, "a vague name: _told"),
    ]
    assert sorted(vague_attributes(code)) == [
        (14, "a vague name of an attribute: _known"),
        (14, "a vague name of an attribute: at"),
    ]
    assert sorted(vague_functions(code)) == [
        (4, "a function named by a preposition: of_lock"),
        (7, "a function named by a preposition: _in"),
        (9, "a function named by a preposition: in_"),
        (14, "a vague name of a function: _found"),
        (19, "a function named by a participle: _scaled"),
    ]


def test_the_folders_with_names_of_the_field_exist() -> None:
    for folder in FINISHED:
        assert list((ROOT / folder).rglob("*.py")), folder
    assert is_finished(Path("collector/analysis/idle/rules.py"))
    assert not is_finished(Path("bench/memory.py"))
    assert not is_finished(Path("tests/lint/names.py"))
    assert is_finished(Path("tests/support/tool.py"))
    assert not is_product(Path("tests/support/tool.py"))
