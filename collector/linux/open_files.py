"""The open files of all processes, by what they refer to: who has the other end of a pipe."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from msgspec import Struct

from locktop.collector.linux import procfs


class Descriptor(NamedTuple):
    """A descriptor of a process."""

    pid: int
    fd: int
    reads: bool  # the access mode permits reads
    writes: bool


class OpenFiles(Struct, frozen=True):
    """The descriptors of processes."""

    #: The kernel's name of what a descriptor refers to, by pid and fd: "pipe:[123]", a path.
    targets: Mapping[int, Mapping[int, str]] = MappingProxyType({})
    #: The descriptors by that name.
    by_target: Mapping[str, Sequence[Descriptor]] = MappingProxyType({})
    #: The processes whose descriptors the kernel hides from this user.
    hidden: frozenset[int] = frozenset()


def read_all(pids: Iterable[int]) -> OpenFiles:
    """Return the descriptors of these processes; one that has ended has none."""
    targets: dict[int, dict[int, str]] = {}
    by_target: dict[str, list[Descriptor]] = {}
    hidden = set()
    for pid in pids:
        try:
            targets[pid] = _read(pid, by_target)
        except PermissionError:
            hidden.add(pid)
        except OSError:
            continue
    return OpenFiles(targets, by_target, frozenset(hidden))


def _read(pid: int, by_target: dict[str, list[Descriptor]]) -> dict[int, str]:
    """Return what each descriptor of a process refers to, and add it to ``by_target``."""
    directory = f"{procfs.shared_directory(pid)}/fd"
    targets: dict[int, str] = {}
    for name in os.listdir(directory):
        try:
            target = os.readlink(f"{directory}/{name}")
            # The rights of the link are the access mode of the descriptor (proc_pid_fd(5)). The
            # link itself is read, never the file: that could hang on a file system in trouble.
            mode = os.lstat(f"{directory}/{name}").st_mode
        except FileNotFoundError:
            continue
        fd = int(name)
        targets[fd] = target
        file = Descriptor(pid, fd, bool(mode & stat.S_IRUSR), bool(mode & stat.S_IWUSR))
        by_target.setdefault(target, []).append(file)
    return targets


def information(pid: int, fd: int) -> Sequence[tuple[str, str]]:
    """Return the fields of a descriptor's fdinfo (proc_pid_fdinfo(5)), in order.

    A name may come several times. A descriptor that is closed, or hidden, has none.
    """
    try:
        data = procfs.read(f"{procfs.shared_directory(pid)}/fdinfo/{fd}")
    except OSError:
        return ()
    lines = (line.partition(":") for line in data.decode("utf-8", "replace").splitlines())
    return [(name.strip(), rest.strip()) for name, _, rest in lines]
