"""Results from large files, stored on disk for the next run; bounded, and never required.

A file that is damaged, cut off, or of another user is ignored. Nothing here raises.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from pathlib import Path

from locktop.collector.linux import regular_file

_MAX_TOTAL = 256 << 20  # bytes of all files; the least recently used go first
_MAX_FILE = 64 << 20  # bytes
_REMAINING = 0.8  # the share of the limit that is left when files had to go
_MAGIC = b"locktop cache 2\n"
_CHECKSUM = 16  # bytes
_TOUCHED_S = 3600.0  # the precision of the time of last use
_ABANDONED_S = 3600.0  # an unfinished file that is older belongs to no process
_UNFINISHED = ".new"


def usual_directory() -> Path | None:
    """Return the directory of the cache; None for no cache.

    The directory is that of LOCKTOP_CACHE, else it is in the user's cache directory.
    """
    setting = os.environ.get("LOCKTOP_CACHE", "")
    if setting == "none":
        return None
    if not setting:
        import platformdirs

        setting = platformdirs.user_cache_dir("locktop", appauthor=False)
    # Without a home directory the path is not absolute.
    return Path(setting) if os.path.isabs(setting) else None


class DiskCache:
    """Bytes by key, in files of one directory, which is made when it is needed.

    Args:
        directory: The directory; None to store nothing.
        max_total: Bytes of all files.
    """

    def __init__(self, directory: Path | None, max_total: int = _MAX_TOTAL) -> None:
        self._directory = directory
        self._max_total = max_total
        self._used: int | None = None  # bytes, nearly

    def get(self, key: str) -> bytes | None:
        """Return the bytes of a key; None if there are none, or if they are damaged."""
        if self._directory is None:
            return None
        path = self._directory / _name(key)
        try:
            data = _read(path)
        except OSError:
            return None
        start = len(_MAGIC) + _CHECKSUM
        if data[:start] != _MAGIC + _check(key, data[start:]):
            return None
        return data[start:]

    def put(self, key: str, data: bytes) -> None:
        """Store bytes under a key, if there is room and the right to."""
        directory = self._directory
        if directory is None or len(data) > min(_MAX_FILE, self._max_total):
            return
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Another user's, as with sudo: that user could redirect what we write.
            if directory.stat().st_uid != os.geteuid():
                self._directory = None
                return
            _write(directory / _name(key), _MAGIC + _check(key, data) + data)
            self._make_room(directory, len(data))
        except OSError:
            self._directory = None  # the next attempt would fail, too

    def _make_room(self, directory: Path, more: int) -> None:
        if self._used is not None and self._used + more <= self._max_total:
            self._used += more
            return
        files = sorted(_files(directory), reverse=True)  # the most recently used first
        used, limit = sum(size for _, size, _ in files), self._max_total
        if used > limit:
            limit = int(limit * _REMAINING)
        while files and used > limit:
            _, size, path = files.pop()
            os.unlink(path)
            used -= size
        self._used = used


def _name(key: str) -> str:
    return hashlib.blake2b(key.encode("utf-8", "surrogateescape"), digest_size=20).hexdigest()


def _check(key: str, data: bytes) -> bytes:
    check = hashlib.blake2b(data, digest_size=_CHECKSUM)
    check.update(key.encode("utf-8", "surrogateescape"))
    return check.digest()


def _read(path: Path) -> bytes:
    fd = regular_file.open_regular(path, owners=(os.geteuid(),), max_bytes=2 * _MAX_FILE)
    with os.fdopen(fd, "rb") as file:
        if time.time() - os.fstat(fd).st_mtime > _TOUCHED_S:
            with contextlib.suppress(OSError):
                os.utime(fd)
        return file.read()


def _write(path: Path, data: bytes) -> None:
    """Write a whole file, or none."""
    unfinished = path.with_name(f"{path.name}.{os.urandom(4).hex()}{_UNFINISHED}")
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
    """Return time of last use, size and path of each file of the cache."""
    files = []
    with os.scandir(directory) as entries:
        for entry in entries:
            name = entry.name.split(".")[0]
            if len(name) != 40 or not entry.is_file(follow_symlinks=False):
                continue
            about = entry.stat(follow_symlinks=False)
            abandoned = time.time() - about.st_mtime > _ABANDONED_S
            if not entry.name.endswith(_UNFINISHED):
                files.append((about.st_mtime, about.st_size, entry.path))
            elif abandoned:
                files.append((0.0, about.st_size, entry.path))
    return files
