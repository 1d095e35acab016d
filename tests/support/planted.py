"""A stranger may put these things at a path where locktop looks for a file of the user."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

#: Far more than any such file may have, and no block of a disk.
HUGE = 1 << 40


def _sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, HUGE)


def _link(path: Path) -> None:
    path.with_name("elsewhere").write_text("take # because\n")
    path.symlink_to("elsewhere")


#: By name: what makes it, and a word of the reason why locktop does not read it.
PLANTED: dict[str, tuple[Callable[[Path], None], str]] = {
    "fifo": (os.mkfifo, "regular"),
    "link": (_link, "link"),
    "dangling link": (lambda path: path.symlink_to("nowhere"), "link"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "link"),
    "directory": (lambda path: path.mkdir(), "directory"),
    "sparse": (_sparse, "larger"),
}
