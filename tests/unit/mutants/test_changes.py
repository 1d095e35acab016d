"""The changes that are made to code, to see whether a test notices them."""

from __future__ import annotations

import ast

import pytest
from mutants.c_changes import c_changes
from mutants.change import Change
from mutants.equivalent import equivalents, without_equivalent
from mutants.parts import parts
from mutants.python_changes import python_changes
from mutants.tree import ROOT


def in_python(text: str) -> list[str]:
    """Return the changed texts, each of which is still Python."""
    changed = [change.applied(text) for change in python_changes("a.py", text)]
    for one in changed:
        ast.parse(one)
    return sorted(changed)


def in_c(text: str) -> list[str]:
    return sorted(change.applied(text) for change in c_changes("a.c", text))


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("a < b", ["a <= b", "a >= b"]),
        ("a == b", ["a != b"]),
        ("(a) is not (b)", ["(a) is (b)"]),
        ("a not in b", ["a in b"]),
        ("a != b == c", ["a != b != c", "a == b == c"]),
        ("a and not b", ["a or not b"]),
        ("a + b * -c", ["a - b * -c"]),
        ("a -= 1", ["a += 1"]),
        ("if a: pass", ["if (not (a)): pass"]),
        ("if not a: pass", ["if a: pass"]),
        ("if not (a or b): pass", ["if (a or b): pass", "if not (a and b): pass"]),
        ("if a == b: pass", ["if a != b: pass"]),
        ("[a for a in b if a]", ["[a for a in b if (not (a))]"]),
        ("a if b else c", ["a if (not (b)) else c"]),
        ("def f(): return a", ["def f(): return None"]),
        ("def f(): return True", ["def f(): return False"]),
        ("def f(): return None", []),
        ("def f(): return", []),
        ("'é' < a", ["'é' <= a", "'é' >= a"]),
    ],
)
def test_each_part_of_python_has_its_changes(text: str, changed: list[str]) -> None:
    assert in_python(text) == changed


def test_imports_and_annotations_of_types_have_no_change() -> None:
    assert in_python("def f(a: b + c) -> b + c: pass") == []
    assert in_python("a: b + c = d") == []
    assert in_python("if TYPE_CHECKING: import a") == []


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("a = b->c < d;", ["a = b->c <= d;", "a = b->c >= d;"]),
        ("if (a == b) c();", ["if (a != b) c();"]),
        ("if (f(a)) c();", ["if (!(f(a))) c();"]),
        (
            "if (a && b == c) d();",
            sorted(["if (a || b == c) d();", "if (a && b != c) d();", "if (!(a && b == c)) d();"]),
        ),
        ("a = -b + c(-1) * *d;", ["a = -b - c(-1) * *d;"]),
        ("a[i++] -= 0x1e+1;", ["a[i++] += 0x1e+1;", "a[i--] -= 0x1e+1;"]),
        ("return true;", ["return false;"]),
        ("return 0;", ["return 1;"]),
        ("return f(a, b);", ["return 0;"]),
        ("return NULL;", []),
        ("return -1;", ["return 0;"]),
        ("if (a) return;", ["if (!(a)) return;", "if (a) ;"]),
        (
            "a = b ? c(d) : e ? f : g;",
            sorted(["a = b ? (e ? f : g) : (c(d));", "a = b ? c(d) : e ? (g) : (f);"]),
        ),
        ("a <<= b << c >> d;", []),
    ],
)
def test_each_part_of_c_has_its_changes(text: str, changed: list[str]) -> None:
    assert in_c(text) == changed


def test_comments_strings_and_the_preprocessor_have_no_change() -> None:
    assert in_c("/* a < b */ f(\"a + b\", '<'); // return 0;\n#if A < \\\n B\n#endif\n") == []


def test_a_change_tells_its_line() -> None:
    text = "a = 1\nif (a and\n    b):\n    pass\n"
    change = next(one for one in python_changes("a.py", text) if one.new == "or")
    assert change.described(text) == "a.py:2\n    - if (a and\n    + if (a or"
    assert Change("a.py", 0, 5, "b = 2").line(text) == 1


def test_every_changed_module_is_still_python() -> None:
    for name in ("analysis", "reader", "recording", "render", "stream", "symbols", "views"):
        changes = parts()[name].changes()
        assert len(changes) > 500
        for change in changes[::60]:
            ast.parse(change.applied((ROOT / change.path).read_text()))


def test_each_change_without_effect_is_a_change_of_the_code() -> None:
    texts = {one.path: (ROOT / one.path).read_text() for one in equivalents()}
    changes = [change for part in parts().values() for change in part.changes()]
    in_files = [change for change in changes if change.path in texts]
    for one in equivalents():
        assert any(one.is_of(change, texts[one.path]) for change in in_files), one
    assert len(changes) - len(without_equivalent(changes)) >= len(equivalents())


def test_an_f_string_is_left_alone() -> None:
    """Python 3.11 does not say where its parts stand."""
    assert in_python('text = f"{a + b}" f"{a or b}"') == []
