"""Modules: few files stay open, and a damaged file is read once."""

from __future__ import annotations

import gc
import lzma
import os
import shutil
from collections import OrderedDict
from pathlib import Path

import pytest
from unit.builders.elf_program import (
    LOCAL,
    Built,
    module,
    name,
)

from locktop.collector.symbols import modules
from locktop.collector.symbols.elf.compression import unpack_xz
from locktop.collector.symbols.memory_map import Mapping
from locktop.collector.symbols.safe_open import open_regular


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    (tmp_path / "link").symlink_to(fifo)
    for path in (fifo, tmp_path / "link", tmp_path, Path("/dev/zero"), tmp_path / "none", "a\0b"):
        assert open_regular(path) is None


def test_few_files_are_kept_open(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modules, "MAX_MODULES", 5)
    monkeypatch.setattr(modules, "open_modules", OrderedDict())
    built.separate(built.directory / ".debug" / "program.debug")
    built.run("objcopy", "--add-gnu-debuglink=.debug/program.debug", built.path)

    def opened_files() -> int:
        return len(os.listdir("/proc/self/fd"))

    gc.collect()
    gc.disable()  # collection may come much later than the last descriptor
    before = opened_files()
    for number in range(20):
        path = built.directory / f"program{number}"
        shutil.copy(built.path, path)
        about = path.stat()
        device = f"{os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x}"
        mapping = Mapping(0, 4096, True, 0, device, about.st_ino, str(path), False)
        found = modules.load(os.getpid(), mapping)
        assert name(found, built.addresses[LOCAL]) == LOCAL
        assert found.locations(built.addresses[LOCAL])
    del found
    kept = opened_files() - before
    gc.enable()
    assert 5 <= kept <= 10


def test_a_damaged_section_is_read_once(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bomb of mini debug info takes half a second until it is refused."""
    found = built.with_section(
        ".gnu_debugdata", lzma.compress(bytes(65 << 20), preset=0), packed=False
    )
    (built.directory / "bomb").write_bytes((built.directory / "forged").read_bytes())
    tries: list[bytes] = []
    monkeypatch.setattr(
        "locktop.collector.symbols.elf.file.unpack_xz",
        lambda data, most: tries.append(data) or unpack_xz(data, most),
    )
    bomb = module(built.directory / "bomb")
    nowhere = max(section.address + section.size for section in found.sections)
    for offset in range(5):
        assert bomb.function(nowhere + offset) is None
    assert len(tries) == 1
    assert bomb.note.endswith("too large, or cut off")
