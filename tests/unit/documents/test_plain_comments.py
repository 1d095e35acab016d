"""Docstrings and comments are plain English: short sentences, with a subject that has a name."""

from __future__ import annotations

import re
import statistics
from pathlib import Path

import pytest
from support.documents import ROOT, sentences, word_count
from support.source_texts import source_files, texts

ROOTS = ("collector", "tui", "bench", "native", "tests")
MAX_WORDS = 30
MAX_MEDIAN = 15
#: Of fewer sentences the median says nothing of a habit.
MIN_SENTENCES = 10
MAX_COLUMNS = 100
#: Words that begin a sentence and stand for a subject that the sentence does not name.
_UNNAMED_SUBJECT = re.compile(r"(It|What|Who|That) ")


def faults(path: Path, source: str) -> list[str]:
    """Return each sentence or line of ``source`` that breaks a rule, with its line."""
    found, counts = [], []
    for number, text in texts(path, source):
        for _, sentence in sentences(text):
            counts.append(count := word_count(sentence))
            if count > MAX_WORDS:
                found.append(f"{number}: {count} words: {sentence}")
            if _UNNAMED_SUBJECT.match(sentence) and not sentence.endswith("?"):
                found.append(f"{number}: no subject: {sentence}")
    if len(counts) >= MIN_SENTENCES and (median := statistics.median(counts)) > MAX_MEDIAN:
        found.append(f"1: median of {median:g} words a sentence")
    for number, line in enumerate(source.splitlines(), 1):
        if len(_without_directive(line)) > MAX_COLUMNS and " " in line.strip():
            found.append(f"{number}: {len(line)} columns")
    return found


def _without_directive(line: str) -> str:
    """Return a line of code without a comment that only tools read."""
    return line.partition("  # type: ")[0]


@pytest.mark.parametrize("path", source_files(ROOTS), ids=str)
def test_comments_are_plain(path: Path) -> None:
    assert faults(path, (ROOT / path).read_text()) == []


def test_the_files_of_each_root_are_read() -> None:
    found = {path.parts[0] for path in source_files(ROOTS)}
    assert found == set(ROOTS)


WORDS = "A b c d e f g h i j " * 3
LONG = WORDS + "k."
SHORT = WORDS.strip() + "."
MANY = "\n".join([SHORT] * 10)
PYTHON_FAULTS = {
    f'"""Title.\n\n{LONG}\n"""': "1: 31 words",
    f'def f():\n    """{LONG}"""': "2: 31 words",
    f"x = 1  # {LONG}": "1: 31 words",
    f"#: {LONG[:20]}\n#: {LONG[20:]}\nx = 1": "1: 31 words",
    '"""It reads a file."""': "1: no subject",
    "x = 1\n# What it reads.": "2: no subject",
    f'"""{(SHORT + " ") * 10}"""': "1: median of 30 words",
    f"x = 1  # {'word' * 24}": "1: 105 columns",
}
PYTHON_PASSES = [
    f'"""{SHORT}"""',
    f'"""{MANY[len(SHORT) + 1 :]}"""',
    f'"""{SHORT}\n{SHORT}\nglibc does so.\n"""',
    f'"""Title.\n\nArgs:\n    one: {SHORT[2:]}\n    two: {SHORT[2:]}\n"""',
    f"x = 1  # {SHORT}\ny = 1  # {SHORT}",
    f"x = 1\n# {SHORT}\n\n# {SHORT}",
    f"x = '{LONG}'",
    "# What does it read?",
    f"x = 1  # type: ignore[{'a' * 100}]",
]
C_FAULTS = {
    f"/* {LONG[:20]}\n * {LONG[20:]} */": "1: 31 words",
    f'char *x = "/*"; // {LONG}': "1: 31 words",
    "int x;\n/* It reads a file. */": "2: no subject",
}
C_PASSES = [
    f"/* {SHORT} */\n/* {SHORT} */",
    f'char *x = "/* {LONG} */";',
    "/* Returns\n *\n *   DONE     after the last one\n *   CHANGED  after one\n * and so on */\n"
    * 4,
]


@pytest.mark.parametrize(("source", "fault"), PYTHON_FAULTS.items())
def test_a_fault_in_python_is_found(source: str, fault: str) -> None:
    (found, *_) = faults(Path("x.py"), source)
    assert found.startswith(fault)


@pytest.mark.parametrize(("source", "fault"), C_FAULTS.items())
def test_a_fault_in_c_is_found(source: str, fault: str) -> None:
    (found,) = faults(Path("x.c"), source)
    assert found.startswith(fault)


@pytest.mark.parametrize("source", PYTHON_PASSES)
def test_plain_python_passes(source: str) -> None:
    assert faults(Path("x.py"), source) == []


@pytest.mark.parametrize("source", C_PASSES)
def test_plain_c_passes(source: str) -> None:
    assert faults(Path("x.h"), source) == []
