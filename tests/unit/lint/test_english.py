"""The lint finds long sentences, long lines and sentences without a subject."""

from __future__ import annotations

from pathlib import Path

import pytest
from lint.english import of_changelog, of_document, of_source

WORDS = "A b c d e f g h i j " * 3
LONG = WORDS + "k."
SHORT = WORDS.strip() + "."
MANY = f"{SHORT} " * 10
BAD_DOCUMENTS = [
    (LONG, "1: 31 words"),
    (f"# Title\n\nShort. {LONG} Short.", "3: 31 words"),
    (f"- Short.\n- {LONG}", "2: 31 words"),
    (f"| a | b |\n|---|---|\n| Short. | {LONG} |", "3: 31 words"),
    ("one\n" * 31, "1: 31 words"),
    (f"    code\n\n{LONG}", "3: 31 words"),
    (f"```\ncode\n```\n{LONG}", "4: 31 words"),
    (f"{SHORT[:-1]} `code` ends.", "1: 32 words"),
    (f"{SHORT[:-1]} [link](docs/guide.md).", "1: 31 words"),
    (MANY.replace(" A", "\nA"), "1: median of 30 words"),
    (f"Short.\n\n{'words ' * 17}\n", "3: 102 columns"),
]
GOOD_DOCUMENTS = [
    f"{SHORT}\n{SHORT}",
    f"{SHORT} locktop says so.",
    f"{SHORT} `locktop` says so.",
    f"- {SHORT}\n- {SHORT}",
    f"| {SHORT} | {SHORT} |",
    f"# {SHORT}\n{SHORT}",
    f"Code follows:\n\n    {LONG}\n    {LONG}\n",
    f"```\n{LONG}\n```",
    f"<!-- {LONG} -->",
    "It reads `a b c d e f g h i j k l m n o p q r s t u v w x y z` as one word.",
    "".join(f"{SHORT}\n{SHORT}\n" for _ in range(5)) + "Yes. No. So. " * 4,
    f"| {'words ' * 17} |\n\n    {'words ' * 17}\n\n```\n{'words ' * 17}\n```\n",
]
BAD_SOURCES = [
    ("x.py", f'"""Title.\n\n{LONG}\n"""', "1: 31 words"),
    ("x.py", f'def f():\n    """{LONG}"""', "2: 31 words"),
    ("x.py", f"x = 1  # {LONG}", "1: 31 words"),
    ("x.py", f"#: {LONG[:20]}\n#: {LONG[20:]}\nx = 1", "1: 31 words"),
    ("x.py", '"""It reads a file."""', "1: no subject"),
    ("x.py", "x = 1\n# What it reads.", "2: no subject"),
    ("x.py", '"""' + MANY.replace(" A", "\nA") + '"""', "1: median of 30 words"),
    ("x.py", f"x = 1  # {'word' * 24}", "1: 105 columns"),
    ("x.c", f"/* {LONG[:20]}\n * {LONG[20:]} */", "1: 31 words"),
    ("x.c", f'char *x = "/*"; // {LONG}', "1: 31 words"),
    ("x.c", "int x;\n/* It reads a file. */", "2: no subject"),
]
GOOD_SOURCES = [
    ("x.py", f'"""{SHORT}"""'),
    ("x.py", '"""' + MANY[len(SHORT) + 1 :].replace(" A", "\nA") + '"""'),
    ("x.py", f'"""{SHORT}\n{SHORT}\nglibc does so.\n"""'),
    ("x.py", f'"""Title.\n\nArgs:\n    one: {SHORT[2:]}\n    two: {SHORT[2:]}\n"""'),
    ("x.py", f"x = 1  # {SHORT}\ny = 1  # {SHORT}"),
    ("x.py", f"x = 1\n# {SHORT}\n\n# {SHORT}"),
    ("x.py", f"x = '{LONG}'"),
    ("x.py", "# What does it read?"),
    ("x.py", f"x = 1  # type: ignore[{'a' * 100}]"),
    ("x.h", f"/* {SHORT} */\n/* {SHORT} */"),
    ("x.h", f'char *x = "/* {LONG} */";'),
    ("x.h", "/* Returns\n *\n *   DONE     after it\n *   CHANGED  later\n * and so on */\n" * 4),
]


@pytest.mark.parametrize(("text", "fault"), BAD_DOCUMENTS)
def test_a_fault_of_a_document_is_found(text: str, fault: str) -> None:
    ((line, message),) = of_document(text)
    assert f"{line}: {message}".startswith(fault)


@pytest.mark.parametrize(("name", "source", "fault"), BAD_SOURCES)
def test_a_fault_of_a_comment_is_found(name: str, source: str, fault: str) -> None:
    (first, *_) = of_source(Path(name), source)
    assert f"{first.line}: {first.message}".startswith(fault)


def test_plain_texts_pass() -> None:
    for text in GOOD_DOCUMENTS:
        assert [*of_document(text)] == [], text
    for name, source in GOOD_SOURCES:
        assert [*of_source(Path(name), source)] == [], source


def test_a_long_entry_is_found() -> None:
    entry = "A b c d e f g h i j " * 2
    assert [fault.line for fault in of_changelog(f"- {entry}\n- {entry} More.\n")] == [2]
