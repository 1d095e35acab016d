"""Snapshots and call trees as the contents and the names of files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from locktop.collector.export.files import plain_name, save_new

if TYPE_CHECKING:
    from locktop.collector.model import Lock, Snapshot, WhatIf
    from locktop.collector.profile.call_tree import Step
    from locktop.collector.profile.calls_profile import CallsProfile
    from locktop.collector.profile.profile import Profile, Weight


def snapshot_name(snapshot: Snapshot, suffix: str) -> str:
    """Return a name that tells the content: locktop-mysqld-4711-20261121T100000Z.json."""
    comm = plain_name(snapshot.process.comm).lstrip(".") or "process"
    taken = re.sub(r"[^0-9TZ]", "", snapshot.taken_at.split(".")[0]) + "Z"
    return f"locktop-{comm}-{snapshot.process.pid}-{taken}{suffix}"


def snapshot_file(
    snapshot: Snapshot,
    form: str,
    before: Snapshot | None = None,
    width: int = 100,
    idle: bool = False,
) -> bytes:
    """Return a snapshot as the content of a file.

    Args:
        snapshot: the scan.
        form: ``json``, ``msgpack`` or ``text``.
        before: an earlier scan of the same process, for the figures of the interval.
        width: columns of the text.
        idle: the text lists the threads that wait for work too.
    """
    if form == "text":
        from locktop.collector.export.text.report import render as as_text

        return encoded(as_text(snapshot, before, width, idle).rstrip("\n") + "\n")
    from locktop.collector.export import snapshot_codec

    return snapshot_codec.encode(snapshot, before, packed=form == "msgpack")


def call_tree_file(
    profile: Profile, weight: Weight, idle: bool, step: Step | None, form: str, width: int = 100
) -> bytes:
    """Return the call tree, or the butterfly of ``step``, as ``json`` or ``text``."""
    from locktop.collector.profile.calls_profile import CallsProfile

    if step is None and isinstance(profile, CallsProfile):
        return calls_file(profile, False, form, width)
    if form == "json":
        import json

        from locktop.collector.export.call_tree_json import document

        whole = document(profile, weight, idle, step)
        return encoded(json.dumps(whole, indent=1, ensure_ascii=False) + "\n")
    from locktop.collector.export.text import call_tree

    if step is None:
        return encoded(call_tree.render_tree(profile, weight, idle, width))
    return encoded(call_tree.render_butterfly(profile, weight, step, idle, width))


def inside_file(snapshot: Snapshot, lock: Lock, form: str, width: int = 100) -> bytes:
    """Return what runs inside a lock, as ``json`` or ``text``."""
    if form == "json":
        import json

        from locktop.collector.export.inside_json import document

        whole = document(snapshot, lock)
        return encoded(json.dumps(whole, indent=1, ensure_ascii=False) + "\n")
    from locktop.collector.export.text.inside import render

    return encoded(render(snapshot, lock, width))


def whatif_file(found: WhatIf, snapshot: Snapshot, form: str, width: int = 100) -> bytes:
    """Return predictions as ``json`` or ``text``."""
    if form == "json":
        import json

        from locktop.collector.export.whatif_json import document

        whole = document(found, snapshot)
        return encoded(json.dumps(whole, indent=1, ensure_ascii=False) + "\n")
    from locktop.collector.export.text.whatif import render

    return encoded(render(found, snapshot, width))


def calls_file(profile: CallsProfile, flat: bool, form: str, width: int = 100) -> bytes:
    """Return function calls as ``json`` or ``text``; with ``flat`` without the tree."""
    if form == "json":
        import json

        from locktop.collector.export.calls_json import document

        whole = document(profile, flat)
        return encoded(json.dumps(whole, indent=1, ensure_ascii=False) + "\n")
    from locktop.collector.export.text.calls import render

    return encoded(render(profile, flat, width))


def call_tree_name(profile: Profile) -> str:
    """Return a name for a file with a call tree: locktop-callers-mysqld-4711, locktop-calls-x-1."""
    process = profile.process
    of = f"-{process.comm}-{process.pid}" if process.pid else ""
    return plain_name(f"locktop-{profile.name}{of}")


def encoded(text: str) -> bytes:
    """Return a text as UTF-8; a lone surrogate becomes an escape, which JSON knows too."""
    return text.encode("utf-8", "backslashreplace")


def save_snapshot(snapshot: Snapshot, form: str, directory: Path | None = None) -> Path:
    """Save a snapshot to a new file and return its path.

    Args:
        snapshot: the scan.
        form: ``json``, ``msgpack`` or ``text``.
        directory: the directory of the file; None for the working directory.

    Raises:
        NotWrittenError: the file cannot be written.
    """
    suffix = {"json": ".json", "msgpack": ".msgpack", "text": ".txt"}[form]
    return save_new(snapshot_name(snapshot, ""), suffix, snapshot_file(snapshot, form), directory)
