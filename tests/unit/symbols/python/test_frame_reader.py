"""Answers of the process that reads Python frames."""

from __future__ import annotations

import pytest

from locktop.collector.symbols.python.frame_reader import PythonFrame, decode_answer, decode_runs


@pytest.mark.parametrize(
    "line",
    [
        b"", b"no JSON", b"[1]", b"{}", b'{"threads": 5}', b'{"threads": {"x": []}}',
        b'{"threads": {"1": [["f"]]}}', b'{"threads": {"1": [[[1, 2, 3]]]}}', b"[" * 100_000,
        b'{"threads": {"1": [[["f", "a.py", "x"]]]}}', b'{"failed": ["?"]}',
    ],
)  # fmt: skip
def test_a_malformed_answer_is_a_failure(line: bytes) -> None:
    assert decode_answer(line) == "ended"


def test_names_in_an_answer_are_cleaned() -> None:
    line = b'{"threads": {"7": [[["\\u001b[31m", "/x/\\u202ea.py", 3]], [["<module>", "", 0]]]}}'
    inner, outer = PythonFrame("?[31m", "?a.py", 3, "/x"), PythonFrame("<module>", "", None)
    assert decode_answer(line) == {7: ((inner,), (outer,))}


@pytest.mark.parametrize(
    ("answer", "runs"),
    [
        (b'{"threads": {}, "runs": {"7": 12, "8": 3}}', {7: 12, 8: 3}),
        (b'{"threads": {}}', {}),
        (b'{"runs": {"7": [1]}}', {}),
        (b'{"runs": {"x": 1}}', {}),
        (b'{"runs": 5}', {}),
        (b"[1]", {}),
        (b"", {}),
    ],
)
def test_the_runs_of_threads_are_in_the_answer_or_there_are_none(
    answer: bytes, runs: dict[int, int]
) -> None:
    assert decode_runs(answer) == runs
