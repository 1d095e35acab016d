"""The address of a stream: ``udp://HOST:PORT``, ``tcp://HOST:PORT`` or ``unix:///PATH``."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from enum import StrEnum

from msgspec import Struct

from locktop.collector.errors import LocktopError

#: The host of a listener that names none.
_HERE = "127.0.0.1"
#: sockaddr_un has 108 bytes, one of them for the end.
_LONGEST_PATH = 107
_FORMS = "udp://HOST:PORT, tcp://HOST:PORT and unix:///PATH are"
_HOST_PORT = re.compile(r"(?:\[([^\]]*)\]|([^:\[\]/]*)):(\d{1,5})/?")

#: An address as socket.bind() and connect() take it.
SocketAddress = tuple[str, int] | tuple[str, int, int, int]


class Transport(StrEnum):
    """How a stream travels."""

    UDP = "udp"
    TCP = "tcp"
    UNIX = "unix"


class StreamUrl(Struct, frozen=True):
    """A parsed address."""

    transport: Transport
    host: str = ""
    port: int = 0
    path: str = ""  # of a unix socket

    def __str__(self) -> str:
        if self.transport is Transport.UNIX:
            return f"unix://{self.path}"
        return f"{self.transport}://{host_port(self.host, self.port)}"


class Endpoint(Struct, frozen=True):
    """A resolved address."""

    family: int
    address: SocketAddress

    @property
    def is_loopback(self) -> bool:
        """Whether the address is of this machine alone."""
        address = ipaddress.ip_address(self.address[0].partition("%")[0])
        mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
        return (mapped or address).is_loopback


def host_port(host: str, port: int) -> str:
    """Return ``HOST:PORT``, with brackets where the host has colons."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse(text: str, *, listens: bool = False) -> StreamUrl:
    """Return the parsed address.

    Args:
        text: what the user gave.
        listens: whether the address is to listen at. Then the host may be left out, and port 0
            lets the system choose.

    Raises:
        LocktopError: the text is no address of a stream.
    """
    scheme, separator, rest = text.partition("://")
    if not separator or scheme not in tuple(Transport):
        raise LocktopError(f"{text!r} is no address of a stream; {_FORMS}")
    if scheme == Transport.UNIX:
        return _unix(text, rest)
    match = _HOST_PORT.fullmatch(rest)
    if match is None:
        cure = "; an IPv6 address needs brackets: [::1]" if rest.count(":") > 1 else ""
        raise LocktopError(f"{text!r} needs a host and a port: {scheme}://HOST:PORT{cure}")
    host, port = match[1] or match[2] or "", int(match[3])
    if not host and not listens:
        raise LocktopError(f"{text!r} names no host: {scheme}://HOST:PORT")
    if not (0 if listens else 1) <= port <= 65535:
        raise LocktopError(f"{text!r}: the port is a number from 1 to 65535")
    return StreamUrl(Transport(scheme), host or _HERE, port)


def _unix(text: str, path: str) -> StreamUrl:
    if not path.startswith("/") or path.endswith("/"):
        raise LocktopError(f"{text!r} needs the whole path of a socket: unix:///run/user/1000/name")
    if len(os.fsencode(path)) > _LONGEST_PATH:
        raise LocktopError(f"{text!r}: the path of a socket has at most {_LONGEST_PATH} bytes")
    return StreamUrl(Transport.UNIX, path=path)


def resolve(url: StreamUrl) -> list[Endpoint]:
    """Return the addresses of the host, those of IPv4 first. Raises LocktopError."""
    kind = socket.SOCK_DGRAM if url.transport is Transport.UDP else socket.SOCK_STREAM
    try:
        results = socket.getaddrinfo(url.host, url.port, type=kind)
    except (OSError, UnicodeError) as error:
        reason = (getattr(error, "strerror", None) or "no name of a host").lower()
        raise LocktopError(f"{url}: the host is not found: {reason}") from None
    endpoints = [
        Endpoint(family, (str(address[0]), *map(int, address[1:])))  # type: ignore[arg-type]
        for family, _, _, _, address in results
        if family in (socket.AF_INET, socket.AF_INET6)
    ]
    if not endpoints:
        raise LocktopError(f"{url}: the host has no address")
    # A listener binds one address, so both ends must prefer the same one of "localhost".
    return sorted(endpoints, key=lambda endpoint: endpoint.family != socket.AF_INET)
