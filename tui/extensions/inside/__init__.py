"""Samples inside locks: their options of commands, their screen, and lines in the details."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from locktop.tui.extension import ScreenExtension, SnapshotOption, ViewLabel

if TYPE_CHECKING:
    import argparse

    from locktop.collector.model import Lock
    from locktop.collector.render.words.snapshot_index import SnapshotIndex
    from locktop.tui.extension_parts import CommandMode, MonitorKey, SnapshotSource
    from locktop.tui.views.styled_line import Line


def _command_modes() -> Mapping[str, CommandMode]:
    from locktop.tui.extensions.inside import callers_mode

    return {"callers": callers_mode}


def _snapshot_source() -> SnapshotSource:
    from locktop.tui.extensions.inside import samples

    return samples


def _add_frequency(parser: argparse.ArgumentParser) -> None:
    from locktop.tui.extensions.inside import samples

    samples.add_frequency(parser)


def _monitor_key() -> MonitorKey:
    from locktop.tui.extensions.inside.keys import MONITOR_KEY

    return MONITOR_KEY


def _lock_details(index: SnapshotIndex, lock: Lock) -> Iterator[Line]:
    if "inside" in index.snapshot.sections:
        from locktop.tui.extensions.inside import lines

        yield from lines.inside_details(index, lock)


EXTENSION = ScreenExtension(
    "inside",
    command_modes=_command_modes,
    snapshot_option=SnapshotOption(
        "with -d: sample what runs while threads hold contended locks",
        _snapshot_source,
        {"hz": _add_frequency},
    ),
    monitor_key=_monitor_key,
    view_label=ViewLabel("0", "Inside", "In"),
    lock_details=_lock_details,
)
