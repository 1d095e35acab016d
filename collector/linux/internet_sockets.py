"""The TCP and UDP sockets of a network namespace (proc_pid_net(5))."""

from __future__ import annotations

import ipaddress
import struct
import sys
from collections.abc import Iterator
from typing import NamedTuple

from locktop.collector.linux import procfs

_NATIVE = "<" if sys.byteorder == "little" else ">"
_PROTOCOLS = ("tcp", "tcp6", "udp", "udp6")
_LISTENS, _CONNECTS = "0A", "02"  # TCP_LISTEN and TCP_SYN_SENT (include/net/tcp_states.h)
_FIELDS = 10


class InternetSocket(NamedTuple):
    """One socket."""

    protocol: str  # "tcp" or "udp"
    local: str  # address and port
    remote: str  # the same; the port is 0 if the socket is not connected
    inode: int  # 0: no process has accepted the connection yet
    listens: bool = False
    connects: bool = False  # the other side has not answered yet
    namespace: int = 0  # the process by which the network namespace was read

    @property
    def is_connected(self) -> bool:
        """Whether the socket has another end."""
        return not self.listens and not self.remote.endswith(":0")

    def may_reach(self, other: InternetSocket) -> bool:
        """Return whether a packet may go from here to another socket, by the namespaces alone."""
        is_loopback = self.remote.startswith(("127.", "[::1]"))
        return not is_loopback or self.namespace == other.namespace

    @property
    def port(self) -> str:
        """The local port."""
        return self.local.rpartition(":")[2]


def read_all(pid: int) -> list[InternetSocket]:
    """Return the sockets of a process's network namespace; none if they cannot be read."""
    return [row for protocol in _PROTOCOLS for row in _rows(pid, protocol)]


def _rows(pid: int, protocol: str) -> Iterator[InternetSocket]:
    try:
        lines = procfs.read(f"{procfs.shared_directory(pid)}/net/{protocol}").splitlines()[1:]
    except OSError:
        return
    for line in lines:
        fields = line.split(None, _FIELDS)
        if len(fields) < _FIELDS:
            continue
        state = fields[3].decode("ascii", "replace")
        yield InternetSocket(
            protocol=protocol.rstrip("6"),
            local=parse_address(fields[1]),
            remote=parse_address(fields[2]),
            inode=int(fields[9]),
            listens=protocol.startswith("tcp") and state == _LISTENS,
            connects=protocol.startswith("tcp") and state == _CONNECTS,
            namespace=pid,
        )


def parse_address(field: bytes) -> str:
    """Return an address with its port; an IPv4 address that IPv6 contains is one of IPv4.

    Args:
        field: the address in hexadecimal words in the machine's order, and the port.
    """
    address, _, port = field.decode("ascii", "replace").partition(":")
    words = [int(address[start : start + 8], 16) for start in range(0, len(address), 8)]
    # Each word has the bytes in the order of the network.
    number = ipaddress.ip_address(struct.pack(f"{_NATIVE}{len(words)}I", *words))
    number = getattr(number, "ipv4_mapped", None) or number
    host = f"[{number}]" if number.version == 6 else str(number)
    return f"{host}:{int(port, 16)}"
