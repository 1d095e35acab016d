"""Opens a FILE that the user named on the command line."""

from __future__ import annotations

import os
from typing import BinaryIO

from locktop.collector.errors import LocktopError, reason_of
from locktop.collector.linux.regular_file import open_regular


def open_input(path: str) -> BinaryIO:
    """Open a regular file for reading. A FIFO or a device could let the command wait for ever.

    Raises:
        LocktopError: the file cannot be opened, or is not regular.
    """
    try:
        return os.fdopen(open_regular(path, follow_link=True), "rb")
    except OSError as error:
        raise LocktopError(f"{path}: {reason_of(error)}") from None
