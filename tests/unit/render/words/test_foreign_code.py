"""Which frames are code that the program did not write."""

from __future__ import annotations

import pytest

from locktop.collector.model import Frame
from locktop.collector.model.frames import PYTHON_NOT_READ
from locktop.collector.render.words.foreign_code import innermost_program_frame, owner_of

_SOCKET = "_socket.cpython-311-x86_64-linux-gnu.so"


@pytest.mark.parametrize(
    ("function", "file", "module", "owner"),
    [
        ("pthread_mutex_lock", None, "libc.so.6", "the standard library"),
        ("run", "/usr/lib/python3.11/threading.py", "python", "the standard library"),
        ("_PyEval_EvalFrameDefault", None, "python3.11", "Python's interpreter"),
        ("", None, "libpython3.12.so.1.0", "Python's interpreter"),
        ("sock_recv", "/src/Python-3.11/Modules/socketmodule.c", _SOCKET, "Python's interpreter"),
        ("flush", "/srv/app/store.py", "python", ""),
        ("fast_flush", "/srv/app/fast.c", "fast.cpython-311-x86_64-linux-gnu.so", ""),
        ("cache_get", "cache.c", "store", ""),
    ],
)
def test_the_module_and_the_file_tell_the_owner(
    function: str, file: str | None, module: str, owner: str
) -> None:
    assert owner_of(Frame(0x10, function, file, 1, module, 0x10)) == owner


def test_a_python_function_says_more_than_what_it_calls_in_c() -> None:
    in_c = Frame(0x10, "fast_flush", "/srv/app/fast.c", 1, "fast.so", 0x10)
    library = Frame(0x10, "run", "/usr/lib/python3.11/threading.py", 1, "python", 0x10)
    in_python = Frame(0x10, "flush", "/srv/app/store.py", 1, "python", 0x10)
    assert innermost_program_frame((in_c, library, in_python)) == in_python
    assert innermost_program_frame((in_c, library)) == in_c


def test_functions_that_were_not_read_are_no_location_of_the_program() -> None:
    in_c = Frame(0x10, "sock_recv", "/src/Python-3.11/Modules/socketmodule.c", 1, _SOCKET, 0x10)
    assert innermost_program_frame((in_c, PYTHON_NOT_READ)) is None
