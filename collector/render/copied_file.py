"""The file with the text that the user copied last."""

from __future__ import annotations

from pathlib import Path

from locktop.collector.errors import LocktopError
from locktop.collector.linux.private_directory import private_directory
from locktop.collector.render.files import NotWrittenError, write_file

_NAME = "copied.txt"


def save_copy(data: bytes) -> Path:
    """Write ``data`` in place of the text copied before; return the path of the file.

    Only the user can read the file. Raises LocktopError.
    """
    path = private_directory("copies", "copies") / _NAME
    try:
        write_file(path, data, replace=True)
    except NotWrittenError as error:
        raise LocktopError(str(error)) from None
    return path
