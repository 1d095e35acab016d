"""Writing files: whole or not at all, and never over one that is there unless asked."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from locktop.collector.model import Snapshot
    from locktop.collector.profile.call_tree import Step
    from locktop.collector.profile.profile import Profile, Weight

_TRIES = 100


class NotWrittenError(Exception):
    """One line that says of the path given why nothing was written to it."""


def why_not(path: Path, replace: bool) -> str | None:
    """Why nothing may be written to ``path`` as things are, in one line; None when it may."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return None if path.parent.is_dir() else f"{path}: no such directory"
    except OSError as error:
        return f"{path}: {words(error)}"
    if stat.S_ISLNK(mode):
        return f"{path} is a symbolic link to {os.readlink(path)}; name that file itself"
    if stat.S_ISDIR(mode):
        return f"{path} is a directory; name a file in it"
    if _is_stream(mode):
        return None
    if not stat.S_ISREG(mode):
        return f"{path} is neither a file nor a pipe"
    return None if replace else f"{path} exists; --force writes over it"


def write_file(path: Path, data: bytes, *, replace: bool = False) -> None:
    """Write ``data`` to ``path`` in one step, readable by its user only.

    A pipe or a character device is written to as it is. A file that is there is replaced if
    ``replace`` is true; a symbolic link never is. Raises NotWrittenError.
    """
    reason = why_not(path, replace)
    if reason is not None:
        raise NotWrittenError(reason)
    try:
        if os.path.lexists(path) and _is_stream(path.lstat().st_mode):
            _write_into(path, data)
        else:
            _write_new(path, data, replace)
    except OSError as error:
        raise NotWrittenError(why_not(path, replace) or f"{path}: {words(error)}") from error


def _is_stream(mode: int) -> bool:
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def _write_into(path: Path, data: bytes) -> None:
    # Never O_CREAT nor O_TRUNC, and no link: only what was looked at before.
    descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NOCTTY)
    with os.fdopen(descriptor, "wb") as file:
        if not _is_stream(os.fstat(descriptor).st_mode):
            raise FileExistsError(errno.EEXIST, "it changed meanwhile")
        file.write(data)


def _write_new(path: Path, data: bytes, replace: bool) -> None:
    descriptor, name = tempfile.mkstemp(prefix=".locktop-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if replace and os.path.lexists(path):
            if not stat.S_ISREG(path.lstat().st_mode):
                raise FileExistsError(errno.EEXIST, "it changed meanwhile")
            os.replace(name, path)
            return
        # A link fails where a rename would overwrite.
        os.link(name, path)
        os.unlink(name)
    except BaseException:
        _forget(name)
        raise


def words(error: OSError) -> str:
    """What the system says, without the path, which may be one nobody has asked for; and what to
    do about it."""
    said = error.strerror or "cannot be written"
    cure = "; make room there" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
    return said[:1].lower() + said[1:] + cure


def _forget(name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name)


def snapshot_name(snapshot: Snapshot, suffix: str) -> str:
    """A name that says what is in the file: locktop-mysqld-4711-20261121T100000Z.json."""
    comm = re.sub(r"[^A-Za-z0-9_.-]", "_", snapshot.process.comm).lstrip(".") or "process"
    taken = re.sub(r"[^0-9TZ]", "", snapshot.taken_at.split(".")[0]) + "Z"
    return f"locktop-{comm}-{snapshot.process.pid}-{taken}{suffix}"


def render(
    snapshot: Snapshot,
    form: str,
    before: Snapshot | None = None,
    width: int = 100,
    idle: bool = False,
) -> bytes:
    """The snapshot as ``json``, ``msgpack`` or ``text`` (of ``width`` columns; with ``idle`` also
    the threads that wait for work)."""
    if form == "text":
        from locktop.collector.export.text.report import render as as_text

        return encoded(as_text(snapshot, before, width, idle).rstrip("\n") + "\n")
    from locktop.collector.export import snapshot_codec

    return snapshot_codec.encode(snapshot, before, packed=form == "msgpack")


def call_tree_file(
    profile: Profile, weight: Weight, idle: bool, step: Step | None, form: str, width: int = 100
) -> bytes:
    """The tree of callers, or of ``step`` the butterfly, as ``json`` or ``text``."""
    if form == "json":
        import json

        from locktop.collector.export.call_tree_json import document

        whole = document(profile, weight, idle, step)
        return encoded(json.dumps(whole, indent=1, ensure_ascii=False) + "\n")
    from locktop.collector.export.text import call_tree

    if step is None:
        return encoded(call_tree.render_tree(profile, weight, idle, width))
    return encoded(call_tree.render_butterfly(profile, weight, step, idle, width))


def call_tree_name(profile: Profile) -> str:
    """A name for a file with callers: locktop-callers-mysqld-4711."""
    process = profile.process
    of = f"-{process.comm}-{process.pid}" if process.pid else ""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", f"locktop-callers{of}")


def encoded(text: str) -> bytes:
    """``text`` as UTF-8."""
    # A lone surrogate becomes an escape, which JSON knows too.
    return text.encode("utf-8", "backslashreplace")


def save_snapshot(snapshot: Snapshot, form: str, directory: Path | None = None) -> Path:
    """Save to a new file in ``directory`` (default: where we are) and give its path.

    Raises NotWrittenError.
    """
    suffix = {"json": ".json", "msgpack": ".msgpack", "text": ".txt"}[form]
    return save_new(snapshot_name(snapshot, ""), suffix, render(snapshot, form), directory)


def save_new(name: str, suffix: str, data: bytes, directory: Path | None = None) -> Path:
    """Save to a new file in ``directory`` (default: where we are), with a number where there is one
    of that name, and give its path.

    Raises NotWrittenError.
    """
    root = directory or Path.cwd()
    for number in range(1, _TRIES):
        path = root / (f"{name}{suffix}" if number == 1 else f"{name}-{number}{suffix}")
        if os.path.lexists(path):
            continue
        try:
            write_file(path, data)
        except NotWrittenError:
            if os.path.lexists(path):
                continue
            raise
        return path
    raise NotWrittenError(f"{root}: too many files called {name}*")
