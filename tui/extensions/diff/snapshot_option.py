"""The option ``--diff`` of ``locktop snapshot`` and ``locktop report``."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from locktop.collector.errors import LocktopError
from locktop.tui.commands import recorded
from locktop.tui.extensions.diff.command import operand, side

if TYPE_CHECKING:
    from locktop.collector.model import Snapshot
    from locktop.collector.sources.attach import Source


def check(arguments: argparse.Namespace) -> None:
    """Raise LocktopError if there is no recording to compare."""
    if arguments.file is None or not recorded.is_recording(arguments.file):
        raise LocktopError("--diff needs a recording; `locktop diff A B` compares other files")


def from_process(source: Source, arguments: argparse.Namespace) -> Snapshot:
    """Raise LocktopError: only a recording is compared."""
    raise LocktopError("--diff needs a recording")


def from_recording(snapshot: Snapshot, arguments: argparse.Namespace) -> Snapshot:
    """Return the snapshot with what changed since the other file.

    Raises:
        LocktopError: the files cannot be compared.
    """
    from msgspec.structs import replace

    from locktop.collector.extensions.diff import sides
    from locktop.collector.extensions.diff.compare import compare
    from locktop.collector.extensions.diff.text_report import section

    before = side(operand(arguments.diff))
    end = arguments.at if arguments.at is not None else arguments.end
    with recorded.opened(arguments.file) as recording:
        after = sides.side_of_recording(recording, arguments.begin, end, arguments.file)
    difference = section(compare(before, after))
    return replace(snapshot, sections={**snapshot.sections, "diff": difference})
