"""What was worked out of large files, kept on disk for the next run; bounded, and never needed.

A file that is damaged, cut off, or not our own user's is as good as none. Nothing here raises.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
import time
from pathlib import Path

_MAX = 256 << 20  # bytes of all files together; what was used longest ago goes first
_MAX_OF_ONE = 64 << 20
_LEFT = 0.8  # of that, when some had to go
_MAGIC = b"locktop cache 1\n"
_CHECK = 16  # bytes of a checksum
_TOUCHED_S = 3600.0  # how exact the time of the last use is kept
_ABANDONED_S = 3600.0  # a file that is still being written after that belongs to nobody
_UNFINISHED = ".new"


def usual_directory() -> Path | None:
    """Return where LOCKTOP_CACHE says that files are kept, or else where a user's caches are; None
    for nowhere."""
    told = os.environ.get("LOCKTOP_CACHE", "")
    if told == "none":
        return None
    if not told:
        import platformdirs

        told = platformdirs.user_cache_dir("locktop", appauthor=False)
    # Without a home there is no absolute path to be had.
    return Path(told) if os.path.isabs(told) else None


class DiskCache:
    """Bytes by key, in files of one directory, which is made when there is something to keep."""

    def __init__(self, directory: Path | None, most: int = _MAX) -> None:
        self._directory = directory
        self._most = most
        self._used: int | None = None  # bytes, nearly

    def get(self, key: str) -> bytes | None:
        """Return what was kept under the key; None if there is nothing sound."""
        if self._directory is None:
            return None
        path = self._directory / _name(key)
        try:
            data = _read(path)
        except OSError:
            return None
        start = len(_MAGIC) + _CHECK
        if data[:start] != _MAGIC + _check(key, data[start:]):
            return None
        return data[start:]

    def put(self, key: str, data: bytes) -> None:
        """Keep bytes under the key, where there is room and right to."""
        directory = self._directory
        if directory is None or len(data) > min(_MAX_OF_ONE, self._most):
            return
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Somebody else's, as with sudo: what we write there could be led astray.
            if directory.stat().st_uid != os.geteuid():
                self._directory = None
                return
            _write(directory / _name(key), _MAGIC + _check(key, data) + data)
            self._make_room(directory, len(data))
        except OSError:
            self._directory = None  # it will not be better for the next

    def _make_room(self, directory: Path, more: int) -> None:
        if self._used is not None and self._used + more <= self._most:
            self._used += more
            return
        files = sorted(_files(directory), reverse=True)  # the latest used first
        used, limit = sum(size for _, size, _ in files), self._most
        if used > limit:
            limit = int(limit * _LEFT)
        while files and used > limit:
            _, size, path = files.pop()
            os.unlink(path)
            used -= size
        self._used = used


def _name(key: str) -> str:
    return hashlib.blake2b(key.encode("utf-8", "surrogateescape"), digest_size=20).hexdigest()


def _check(key: str, data: bytes) -> bytes:
    check = hashlib.blake2b(data, digest_size=_CHECK)
    check.update(key.encode("utf-8", "surrogateescape"))
    return check.digest()


def _read(path: Path) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        about = os.fstat(fd)
        sound = stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid()
        if not sound or about.st_size > 2 * _MAX_OF_ONE:
            return b""
        if time.time() - about.st_mtime > _TOUCHED_S:
            with contextlib.suppress(OSError):
                os.utime(fd)
        return file.read()


def _write(path: Path, data: bytes) -> None:
    """Put a whole file in place, or nothing."""
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(4)}{_UNFINISHED}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(unfinished, flags, 0o600), "wb") as file:
            file.write(data)
        os.replace(unfinished, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        raise


def _files(directory: Path) -> list[tuple[float, int, str]]:
    """Return the time of use, the size and the path of each file of ours."""
    found = []
    with os.scandir(directory) as entries:
        for entry in entries:
            name = entry.name.split(".")[0]
            if len(name) != 40 or not entry.is_file(follow_symlinks=False):
                continue
            about = entry.stat(follow_symlinks=False)
            abandoned = time.time() - about.st_mtime > _ABANDONED_S
            if not entry.name.endswith(_UNFINISHED):
                found.append((about.st_mtime, about.st_size, entry.path))
            elif abandoned:
                found.append((0.0, about.st_size, entry.path))
    return found
