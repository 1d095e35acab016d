"""Writing files: whole or not at all, and never over one that is there unless asked."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from locktop.collector.model import Snapshot

_TRIES = 100


def write_file(path: Path, data: bytes, *, replace: bool = False) -> None:
    """Write ``data`` to ``path`` in one step, readable by its user only.

    Raises FileExistsError if something is there and ``replace`` is false, else OSError.
    """
    if not replace and path.is_symlink():
        raise FileExistsError(17, "File exists", str(path))
    descriptor, name = tempfile.mkstemp(prefix=".locktop-", dir=path.parent or Path())
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            os.replace(name, path)
            return
        # A link fails where a rename would overwrite.
        os.link(name, path)
        os.unlink(name)
    except BaseException:
        _forget(name)
        raise


def _forget(name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name)


def picture_name(snapshot: Snapshot, suffix: str) -> str:
    """A name that says what is in the file: locktop-mysqld-4711-20261121T100000Z.json."""
    comm = re.sub(r"[^A-Za-z0-9_.-]", "_", snapshot.process.comm).lstrip(".") or "process"
    taken = re.sub(r"[^0-9TZ]", "", snapshot.taken_at.split(".")[0]) + "Z"
    return f"locktop-{comm}-{snapshot.process.pid}-{taken}{suffix}"


def render(
    snapshot: Snapshot, form: str, before: Snapshot | None = None, width: int = 100
) -> bytes:
    """The snapshot as ``json``, ``msgpack`` or ``text`` (of ``width`` columns)."""
    if form == "text":
        from locktop.collector.export.text import render as as_text

        return _encoded(as_text(snapshot, before, width).rstrip("\n") + "\n")
    from locktop.collector.export.json_ import document

    whole = document(snapshot, before)
    if form == "msgpack":
        import msgpack

        return bytes(msgpack.packb(whole))
    import json

    return _encoded(json.dumps(whole, indent=1, ensure_ascii=False) + "\n")


def _encoded(text: str) -> bytes:
    # A lone surrogate becomes an escape, which JSON knows too.
    return text.encode("utf-8", "backslashreplace")


def save_picture(snapshot: Snapshot, form: str, directory: Path | None = None) -> Path:
    """Save to a new file in ``directory`` (default: where we are) and give its path.

    Raises OSError.
    """
    data = render(snapshot, form)
    root = directory or Path.cwd()
    suffix = {"json": ".json", "msgpack": ".msgpack", "text": ".txt"}[form]
    name = picture_name(snapshot, "")
    for number in range(1, _TRIES):
        path = root / (f"{name}{suffix}" if number == 1 else f"{name}-{number}{suffix}")
        try:
            write_file(path, data)
        except FileExistsError:
            continue
        return path
    raise FileExistsError(17, f"too many files called {name}*", str(root))
