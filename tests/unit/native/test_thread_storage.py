"""The thread-local variables of the library take little room: they lie in each thread's stack."""

from __future__ import annotations

from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

import locktop

#: Bytes. A program may give its threads the smallest stack that there is.
MAX_SIZE = 1024

LIBRARIES = [
    path
    for directory in locktop.__path__
    for path in Path(directory, "lib").glob("liblocktop*.so")
    if "reader" not in path.name
]


def test_the_libraries_are_found() -> None:
    assert {path.name for path in LIBRARIES} == {"liblocktop.so", "liblocktop-nop.so"}


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda path: path.name)
def test_thread_local_variables_are_small(library: Path) -> None:
    with library.open("rb") as file:
        sizes = [
            segment["p_memsz"]
            for segment in ELFFile(file).iter_segments()
            if segment["p_type"] == "PT_TLS"
        ]
    assert sizes
    assert sum(sizes) <= MAX_SIZE
