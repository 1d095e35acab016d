"""Describes the file descriptors of a process: files by path, sockets by their addresses."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from locktop.collector.linux import procfs
from locktop.collector.linux.internet_sockets import parse_address
from locktop.collector.sanitize import clean

_SOCKET = re.compile(r"socket:\[(\d+)\]")
_MAX_LENGTH = 200
#: The row of a socket with a given inode (proc_pid_net(5)): the path, up to the next row.
_UNIX_ROW = rb"^[0-9a-f]+: (?:[0-9A-F]+ +){5}%s(?: (.*?))?\n(?=[0-9a-f]+: [0-9A-F]{8} |\Z)"


def describe(pid: int, fd: int) -> str:
    """Return the description of a descriptor, sanitized; "" if it is not known.

    Examples: "/var/lib/x/wal", "pipe:[123]", "tcp 10.0.0.1:80 -> 10.0.0.7:4711".
    """
    directory = procfs.shared_directory(pid)
    try:
        target = os.readlink(f"{directory}/fd/{fd}")
    except OSError:
        return ""
    if match := _SOCKET.fullmatch(target):
        target = _socket(f"{directory}/net", match[1].encode()) or target
    return clean(target, _MAX_LENGTH)


def _socket(tables: str, inode: bytes) -> str:
    for protocol in ("tcp", "tcp6", "udp", "udp6"):
        for fields in _rows(f"{tables}/{protocol}", inode, 9):
            local, remote = parse_address(fields[1]), parse_address(fields[2])
            name = protocol.rstrip("6")
            if protocol.startswith("tcp") and fields[3] == b"0A":
                return f"{name} listening at {local}"
            is_connected = not remote.endswith(":0")
            return f"{name} {local} -> {remote}" if is_connected else f"{name} {local}"
    return _unix(f"{tables}/unix", inode)


def _unix(file: str, inode: bytes) -> str:
    """Return the description of a socket in the table of Unix sockets; "" if it is not there.

    The table has names unescaped, with blanks and line ends. A name may look like the row of
    another socket. But then two rows match, and the path is left out.
    """
    try:
        table = procfs.read(file)
    except OSError:
        return ""
    rows = re.findall(_UNIX_ROW % inode, table, re.MULTILINE | re.DOTALL)
    path = rows[0].decode("utf-8", "replace") if len(rows) == 1 else ""
    return f"unix {path}" if path else f"unix socket {inode.decode()}" if rows else ""


def _rows(file: str, inode: bytes, column: int) -> Iterator[list[bytes]]:
    """Yield the fields of each line with the inode in column ``column`` (proc_pid_net(5))."""
    try:
        lines = procfs.read(file).splitlines()
    except OSError:
        return
    for line in lines:
        if inode in line:
            fields = line.split()
            if len(fields) > column and fields[column] == inode:
                yield fields
