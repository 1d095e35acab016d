"""Opens files that anybody could have put at their path.

To open a FIFO may wait for ever. To open a device may have an effect. A link may lead to another
user's file. So ``open_regular`` checks the file before it opens the file for reading.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection
from pathlib import Path

from locktop.collector.linux.target import user_name


def open_regular(
    path: str | Path,
    *,
    directory: int | None = None,
    owners: Collection[int] | None = None,
    max_bytes: int | None = None,
    follow_link: bool = False,
) -> int:
    """Open a regular file for reading.

    Args:
        path: The file.
        directory: A file descriptor of the directory of a relative path.
        owners: The user ids that may own the file; None for any.
        max_bytes: The largest size of the file in bytes; None for any.
        follow_link: Whether the last part of the path may be a symbolic link.

    Returns:
        The file descriptor. The caller closes it.

    Raises:
        OSError: The file cannot be opened, or is none of these. ``strerror`` has the reason.
    """
    flags = os.O_PATH | os.O_CLOEXEC | (0 if follow_link else os.O_NOFOLLOW)
    fd = os.open(path, flags, dir_fd=directory)
    try:
        _check(os.fstat(fd), owners, max_bytes)
        return os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    finally:
        os.close(fd)


def _check(about: os.stat_result, owners: Collection[int] | None, max_bytes: int | None) -> None:
    if stat.S_ISLNK(about.st_mode):
        raise OSError(errno.ELOOP, "a symbolic link, not a regular file")
    if stat.S_ISDIR(about.st_mode):
        raise IsADirectoryError(errno.EISDIR, "a directory, not a regular file")
    if not stat.S_ISREG(about.st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    if owners is not None and about.st_uid not in owners:
        wanted = " or ".join(user_name(uid) for uid in sorted(set(owners)))
        owner = user_name(about.st_uid)
        raise PermissionError(errno.EPERM, f"the file belongs to {owner}, not to {wanted}")
    if max_bytes is not None and about.st_size > max_bytes:
        raise OSError(errno.EFBIG, f"larger than {max_bytes} bytes")
