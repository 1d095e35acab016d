"""The very file that a process has mapped, whatever became of its name meanwhile."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterator

from locktop.collector.linux import procfs
from locktop.collector.symbols.memory_map import Mapping, parse
from locktop.collector.symbols.safe_open import OpenFile, open_regular

#: Memory that the kernel calls a deleted file, and that never was one with a name.
_NAMELESS = ("/memfd:", "/SYSV", "/dev/zero", "/anon_hugepage")
_MAX_TOLD = 1024
# What is told of mappings of ours, by device, inode and change time.
_told: dict[tuple[int, int, int], tuple[str, int] | None] = {}


class NotMapped(ValueError):
    """A mapped file cannot be opened; the message says what became of it, if that is known."""


def open_mapped(pid: int, mapping: Mapping) -> OpenFile:
    """Open the file that is mapped; NotMapped where only another one, or none, is to be had."""
    directory, another = procfs.shared(pid), False
    for path in _ways(directory, mapping):
        file = open_regular(path)
        if file is not None and _is_mapped(file, mapping):
            return file
        another |= file is not None
    file = open_regular(f"{directory}/exe")  # the program itself can be had whatever became of it
    if file is not None and _is_mapped(file, mapping):
        return file
    if another:
        raise NotMapped("was replaced since the process started")
    was_a_file = mapping.deleted and not mapping.path.startswith(_NAMELESS)
    raise NotMapped("was deleted since the process started" if was_a_file else "")


def roots(pid: int) -> tuple[str, str]:
    """Return what to put before a path: to find it as the process does, and as we do."""
    return f"{procfs.shared(pid)}/root", ""


def _ways(directory: str, mapping: Mapping) -> Iterator[str]:
    yield f"{directory}/map_files/{mapping.start:x}-{mapping.end:x}"  # for root only, but exact
    for root in (f"{directory}/root", ""):
        yield root + mapping.path
    # The kernel tells paths as we would walk them; a process in a chroot walks from further down.
    try:
        root = os.readlink(f"{directory}/root")
    except OSError:
        return
    if mapping.path.startswith(f"{root}/"):
        yield f"{directory}/root{mapping.path.removeprefix(root)}"


def _is_mapped(file: OpenFile, mapping: Mapping) -> bool:
    about = file.about
    device = f"{os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x}"
    if (device, about.st_ino) == (mapping.device, mapping.inode):
        return True
    # On overlayfs and btrfs the kernel tells one thing of a file and another of its mappings.
    return _mapped_by_us(file) == (mapping.device, mapping.inode)


def _mapped_by_us(file: OpenFile) -> tuple[str, int] | None:
    """Map the file, without ever touching that memory, and return device and inode as told then."""
    key = file.about.st_dev, file.about.st_ino, file.about.st_ctime_ns
    if key not in _told:
        if len(_told) >= _MAX_TOLD:
            _told.clear()
        _told[key] = _tell(file)
    return _told[key]


def _tell(file: OpenFile) -> tuple[str, int] | None:
    try:
        memory = mmap.mmap(file.fd, 1, access=mmap.ACCESS_COPY)
    except (OSError, ValueError):  # an empty file
        return None
    view = ctypes.c_char.from_buffer(memory)
    address = ctypes.addressof(view)
    mappings = parse(procfs.read("/proc/self/maps"))
    del view
    memory.close()
    return next(((m.device, m.inode) for m in mappings if m.start <= address < m.end), None)
