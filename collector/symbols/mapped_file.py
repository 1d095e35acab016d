"""The file that a process has mapped, even if the file's name is gone or leads elsewhere now."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterator

from locktop.collector.linux import procfs
from locktop.collector.symbols.memory_map import Mapping, parse
from locktop.collector.symbols.safe_open import OpenFile, open_regular

#: Memory that the kernel calls a deleted file, but that never had a name.
_NAMELESS = ("/memfd:", "/SYSV", "/dev/zero", "/anon_hugepage")
_MAX_IDENTITIES = 1024
# Device and inode in the memory map, by device, inode and change time of the file.
_identities: dict[tuple[int, int, int], tuple[str, int] | None] = {}


class NotMapped(ValueError):
    """A mapped file cannot be opened; the message says why, if that is known."""


def open_mapped(pid: int, mapping: Mapping) -> OpenFile:
    """Open the file of a mapping.

    Raises:
        NotMapped: Only another file has its name, or none has.
    """
    directory, another = procfs.shared_directory(pid), False
    for path in _paths(directory, mapping):
        file = open_regular(path)
        if file is not None and _is_mapped(file, mapping):
            return file
        another |= file is not None
    file = open_regular(f"{directory}/exe")  # the program itself, even if it was deleted
    if file is not None and _is_mapped(file, mapping):
        return file
    if another:
        raise NotMapped("was replaced since the process started")
    was_a_file = mapping.deleted and not mapping.path.startswith(_NAMELESS)
    raise NotMapped("was deleted since the process started" if was_a_file else "")


def roots(pid: int) -> tuple[str, str]:
    """Return prefixes for a path: as the process finds it, and as we do."""
    return f"{procfs.shared_directory(pid)}/root", ""


def _paths(directory: str, mapping: Mapping) -> Iterator[str]:
    yield f"{directory}/map_files/{mapping.start:x}-{mapping.end:x}"  # exact, but for root only
    for root in (f"{directory}/root", ""):
        yield root + mapping.path
    # The kernel gives paths from our root; a process in a chroot has a root further down.
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
    # On overlayfs and btrfs stat(2) and the memory map differ about the same file.
    return identity_in_maps(file) == (mapping.device, mapping.inode)


def identity_in_maps(file: OpenFile) -> tuple[str, int] | None:
    """Return device and inode that the memory map shows for a file; None for an empty file.

    The file is mapped once, and its memory is not read.
    """
    key = file.about.st_dev, file.about.st_ino, file.about.st_ctime_ns
    if key not in _identities:
        if len(_identities) >= _MAX_IDENTITIES:
            _identities.clear()
        _identities[key] = _map(file)
    return _identities[key]


def _map(file: OpenFile) -> tuple[str, int] | None:
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
