"""Which frames are code that the program did not write."""

from __future__ import annotations

import pytest

from locktop.collector.model import Frame
from locktop.collector.render.words.foreign_code import owner_of


@pytest.mark.parametrize(
    ("function", "file", "module", "owner"),
    [
        ("pthread_mutex_lock", None, "libc.so.6", "the standard library"),
        ("run", "/usr/lib/python3.11/threading.py", "python", "the standard library"),
        ("_PyEval_EvalFrameDefault", None, "python3.11", "Python's interpreter"),
        ("", None, "libpython3.12.so.1.0", "Python's interpreter"),
        ("flush", "/srv/app/store.py", "python", ""),
        ("cache_get", "cache.c", "store", ""),
    ],
)
def test_the_module_and_the_file_tell_the_owner(
    function: str, file: str | None, module: str, owner: str
) -> None:
    assert owner_of(Frame(0x10, function, file, 1, module, 0x10)) == owner
