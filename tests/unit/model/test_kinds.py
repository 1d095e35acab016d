"""The table of the traits of each kind of lock, and the sets made from it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from locktop.collector.model import kinds
from locktop.collector.model.kinds import TRAITS, Kind, KindTraits

ROOT = Path(__file__).resolve().parents[3]
#: The kinds of each set are here once more: a slip in the table would change the findings.
SETS = {
    "CONTENTION_KINDS": "mutex rwlock spin once custom",
    "SIGNALLED_KINDS": "sem cond",
    "EXCLUSIVE_KINDS": "mutex spin",
    "LISTED_KINDS": "mutex rwlock spin once custom",
    "HELD_KINDS": "mutex rwlock spin custom",
    "USED_AS_LOCK_KINDS": "mutex rwlock spin custom sem",
    "ORDERABLE_KINDS": "mutex rwlock spin custom once sem",
    "OWNER_IN_MEMORY_KINDS": "mutex rwlock",
    "READERS_UNNAMED_KINDS": "rwlock",
    "OWNER_UNNAMED_KINDS": "spin once",
    "HOLDER_SOUGHT_KINDS": "rwlock cond futex",
    "OWNER_CHANGES_KINDS": "mutex rwlock futex once",
    "ACROSS_PROCESSES_KINDS": "mutex rwlock",
    "FOR_THREADS_KINDS": "join barrier once",
    "BLOCKED_UNLISTED_KINDS": "join barrier once sem",
    "SPINNING_KINDS": "spin custom",
    "MAY_GIVE_UP_KINDS": "custom",
    "TURNS_KINDS": "rwlock",
    "POSTED_BY_HANDLERS_KINDS": "sem",
    "MUST_BE_ASLEEP_KINDS": "sem cond barrier join",
    "SLEEPS_FOR_ENDED_KINDS": "mutex rwlock once",
    "WAKES_AT_RELEASE_KINDS": "mutex rwlock sem",
    "WOKEN_KINDS": "sem futex",
    "TIMED_BY_WAKES_KINDS": "futex",
    "SAME_REQUESTS_KINDS": "sem cond barrier",
    "USES_COUNTED_KINDS": "sem cond barrier",
    "LIVES_KINDS": "sem",
    "FORGOTTEN_KINDS": "futex barrier join mutex",
    "NAMED_BY_STACK_KINDS": "sem futex",
    "INTERPRETER_LOCK_KINDS": "cond futex",
}


def test_each_kind_has_each_trait() -> None:
    assert list(TRAITS) == list(Kind)
    assert not KindTraits.__struct_defaults__
    flags = [name for name in KindTraits.__struct_fields__ if name != "signal_word"]
    assert {type(getattr(traits, name)) for traits in TRAITS.values() for name in flags} == {bool}


def test_a_kind_without_a_trait_is_an_error() -> None:
    with pytest.raises(TypeError, match="exclusive"):
        KindTraits(contention=True)  # type: ignore[call-arg]


@pytest.mark.parametrize("name", SETS)
def test_a_set_has_the_kinds_with_its_trait(name: str) -> None:
    assert getattr(kinds, name) == frozenset(map(Kind, SETS[name].split()))


def test_each_set_is_tested() -> None:
    assert set(SETS) == {name for name in vars(kinds) if name.endswith("_KINDS")}


def test_what_threads_do_to_signalled_kinds() -> None:
    words = {kind.value: traits.signal_word for kind, traits in TRAITS.items() if traits.signalled}
    assert words == {"sem": "posted", "cond": "signalled"}


def test_no_other_module_sorts_kinds() -> None:
    """A set, tuple or dict of kinds elsewhere would miss a new kind without a word."""
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for top in ("collector", "tui")
        for path in sorted((ROOT / top).rglob("*.py"))
        if path != ROOT / "collector/model/kinds.py"
        for line in _collections_of_kinds(path)
    ]
    assert found == []


def test_a_collection_of_kinds_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "sorts.py"
    path.write_text(
        "A = frozenset({Kind.SEM, Kind.COND})\n"
        "B = kind in (Kind.SEM, Kind.COND)\n"
        "C = {lib.LT_KIND_MUTEX: 1, lib.LT_KIND_SPIN: 2}\n"
        "D = kind is Kind.SEM or wait.kind is Kind.COND\n"
        "E = kind is Kind.SEM\n"
        "F = Kind.MUTEX, 'Python runtime'\n"
    )
    assert sorted(_collections_of_kinds(path)) == [1, 2, 3, 4]


def _collections_of_kinds(path: Path) -> Iterator[int]:
    """Yield the lines with two kinds in one collection, or in one chain of conditions."""
    for node in ast.walk(ast.parse(path.read_text())):
        parts: list[ast.expr | None] = []
        if isinstance(node, ast.Set | ast.Tuple | ast.List):
            parts = [*node.elts]
        elif isinstance(node, ast.Dict):
            parts = [*node.keys]
        elif isinstance(node, ast.BoolOp):
            parts = [part.comparators[0] for part in node.values if isinstance(part, ast.Compare)]
        if sum(map(_is_kind, parts)) > 1:
            yield node.lineno


def _is_kind(node: ast.expr | None) -> bool:
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
        return False
    return node.value.id == "Kind" or node.attr.startswith("LT_KIND_")
