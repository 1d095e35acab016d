"""A unix socket that only its user can reach."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import struct

from locktop.collector.errors import LocktopError
from locktop.collector.extensions.stream.stream_url import StreamUrl

_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid
_OTHERS = 0o177


class BoundSocket:
    """A listening socket in the file system; closing removes its file."""

    def __init__(self, url: StreamUrl) -> None:
        """Make the file, readable and writable by this user alone.

        Raises:
            LocktopError: there is such a file already, or it cannot be made.
        """
        self._path = url.path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._bind(url)
            self.socket.listen()
            status = os.lstat(self._path)
        except OSError as error:
            self.socket.close()
            raise LocktopError(f"{url}: {(error.strerror or 'cannot be made').lower()}") from None
        except LocktopError:
            self.socket.close()
            raise
        self._identity = status.st_dev, status.st_ino

    def _bind(self, url: StreamUrl) -> None:
        try:
            _bind_private(self.socket, self._path)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            if not _is_left_over(self._path):
                raise LocktopError(
                    f"{url}: there is such a file already; name another one"
                ) from None
            os.unlink(self._path)
            _bind_private(self.socket, self._path)

    def close(self) -> None:
        """Close the socket and remove its file, unless another one has its name by now."""
        self.socket.close()
        with contextlib.suppress(OSError):
            status = os.lstat(self._path)
            if (status.st_dev, status.st_ino) == self._identity:
                os.unlink(self._path)


def _bind_private(bound: socket.socket, path: str) -> None:
    before = os.umask(_OTHERS)
    try:
        bound.bind(path)
    finally:
        os.umask(before)


def _is_left_over(path: str) -> bool:
    """Return whether the file is a socket of this user at which no process listens."""
    status = os.lstat(path)
    if not stat.S_ISSOCK(status.st_mode) or status.st_uid != os.geteuid():
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(path) == errno.ECONNREFUSED


def check_peer(connection: socket.socket) -> None:
    """Raise LocktopError unless the process at the other end is of this user or of root."""
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(data)
    if uid not in (0, os.geteuid()):
        raise LocktopError(f"the process at the other end is of another user: uid {uid}")
