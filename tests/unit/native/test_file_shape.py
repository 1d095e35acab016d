"""The C files stay short, and each begins with a sentence on its one job."""

import re
from pathlib import Path

NATIVE = Path(__file__).resolve().parents[3] / "native"
FILES = sorted(path for path in NATIVE.rglob("*") if path.suffix in {".c", ".h", ".def"})

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60

#: From a "{" in the first column to the "}" there: how clang-format lays out a function.
_FUNCTION = re.compile(r"^(\w[^\n;]*\)|[ \t]+[^\n;]*\))\n\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)


def test_no_file_is_long() -> None:
    assert not [str(path) for path in FILES if len(path.read_text().splitlines()) > MAX_FILE_LINES]


def test_no_function_is_long() -> None:
    bodies = [
        (path.name, head.strip(), body.count("\n"))
        for path in FILES
        for head, body in _FUNCTION.findall(path.read_text())
    ]
    assert len(bodies) > 700
    assert not [body for body in bodies if body[2] > MAX_FUNCTION_LINES]


def test_each_file_says_what_it_is_for() -> None:
    assert not [str(path) for path in FILES if not path.read_text().startswith("/* ")]
